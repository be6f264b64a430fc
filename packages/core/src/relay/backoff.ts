export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

/** 2^30 of the smallest base is far beyond any cap; the exponent is limited before it is used. */
const maxExponent = 30

/**
 * The wait after the n-th counted failure: exponential with equal jitter, uniform in [d/2, d] for
 * d = min(cap, base * 2^(n-1)). Equal and not full jitter, because full jitter can draw close to 0 on any attempt.
 * Base 0 retries at the next find.
 */
export function backoffMs(failures: number, { baseMs, capMs }: Backoff, random: () => number): number {
  const longest = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(failures, 1) - 1, maxExponent))
  return longest / 2 + (random() * longest) / 2
}
