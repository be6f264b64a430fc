import { describe, expect, it } from 'vitest'
import { createPace, pause, retryPauseMs, withDeadline, within } from '../../src/relay/pace.ts'

const never = new Promise<never>(() => undefined)
const hourMs = 3_600_000

describe('the wait of a loop that polls', () => {
  it('ends with a wake-up, one that came before it began included', async () => {
    const pace = createPace(hourMs, hourMs)
    pace.wake()
    await pace.wait(Infinity)
    const waiting = pace.wait(Infinity)
    pace.wake()
    await waiting
    // A wake-up is used up by the wait it ended.
    const next = pace.wait(Infinity)
    expect(
      await within(
        next.then(() => 'over'),
        1,
        'still waiting',
      ),
    ).toBe('still waiting')
    pace.wake()
    await next
  })

  it('is over by the time that something is due', async () => {
    await createPace(hourMs, hourMs).wait(1)
    await createPace(hourMs, hourMs).wait(-5)
  })
})

describe('a pause', () => {
  it('ends when its signal aborts, before or during it', async () => {
    await pause(hourMs, AbortSignal.abort())
    const controller = new AbortController()
    const pausing = pause(hourMs, controller.signal)
    controller.abort()
    await pausing
  })

  it('longer than a timer can be does not end at once', async () => {
    const controller = new AbortController()
    const pausing = pause(2 ** 40, controller.signal).then(() => 'over')
    expect(await within(pausing, 5, 'still pausing')).toBe('still pausing')
    controller.abort()
    await pausing
  })

  it('between two tries doubles from 100 ms to 2 s', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 1e9].map(retryPauseMs)).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000])
  })
})

describe('work with a limit', () => {
  it('gives its value or its error, or says that it is late', async () => {
    expect(await within(Promise.resolve('value'), hourMs, 'late')).toBe('value')
    await expect(within(Promise.reject(new Error('no')), hourMs, 'late')).rejects.toThrow('no')
    expect(await within(never, 1, 'late')).toBe('late')
  })
})

describe('a publish with a deadline', () => {
  const limits = { ms: 1, graceMs: 1, late: 'late' } as const

  it('is told to end at its deadline, and what it answers then counts', async () => {
    const running = new Set<AbortController>()
    const work = (signal: AbortSignal): Promise<unknown> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))
    const answer = await withDeadline(work, { ...limits, graceMs: hourMs }, running)
    expect(answer).toMatchObject({ message: 'no answer within 1 ms' })
    expect(running.size).toBe(0)
  })

  it('is given up when it does not end within the grace', async () => {
    const running = new Set<AbortController>()
    expect(await withDeadline(() => never, limits, running)).toBe('late')
    expect(running.size).toBe(0)
  })

  it('can be told to end earlier, by whoever stops the relay', async () => {
    const running = new Set<AbortController>()
    const answer = withDeadline(() => never, { ms: hourMs, graceMs: 1, late: 'late' }, running)
    expect(running.size).toBe(1)
    for (const controller of running) controller.abort()
    expect(await answer).toBe('late')
  })

  it('leaves nothing behind, whether it answers or throws', async () => {
    const running = new Set<AbortController>()
    expect(await withDeadline(() => Promise.resolve('value'), { ...limits, ms: hourMs }, running)).toBe('value')
    await expect(
      withDeadline(() => Promise.reject(new Error('no')), { ...limits, ms: hourMs }, running),
    ).rejects.toThrow('no')
    expect(running.size).toBe(0)
  })
})
