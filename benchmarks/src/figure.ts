/** A measured value, and what is asked of it. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly target?: Target
}

export interface Target {
  readonly atMost?: number
  readonly atLeast?: number
  /**
   * How far beyond the target a run may be before it fails, as a share of the target. The machines that run this are
   * shared, and their noise must not decide.
   */
  readonly tolerance: number
}

/** `reached`, `near` (missed within the tolerance) or `missed`; undefined where nothing is asked. */
export type Verdict = 'reached' | 'near' | 'missed'

export function judge({ value, target }: Figure): Verdict | undefined {
  if (target === undefined) return undefined
  const { atMost = Infinity, atLeast = -Infinity, tolerance } = target
  if (value <= atMost && value >= atLeast) return 'reached'
  return value <= atMost * (1 + tolerance) && value >= atLeast * (1 - tolerance) ? 'near' : 'missed'
}

/** `5.2 ms, target at most 5 (4 % over)`. */
export function describe(figure: Figure): string {
  const { name, value, unit, target } = figure
  const is = `${name}: ${rounded(value)} ${unit}`.trimEnd()
  if (target === undefined) return is
  const [word, limit] = target.atMost === undefined ? ['at least', target.atLeast ?? 0] : ['at most', target.atMost]
  const off = Math.abs(value / limit - 1) * 100
  const by = judge(figure) === 'reached' ? 'reached' : `missed by ${rounded(off)} %`
  return `${is}, target ${word} ${rounded(limit)}: ${by}`
}

/** Three significant digits, and never fewer than the whole part. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
