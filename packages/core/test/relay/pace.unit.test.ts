import { describe, expect, it } from 'vitest'
import { createDeadlines, createPace, late, pause, retryPauseMs, within } from '../../src/relay/pace.ts'

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
    expect(await within(next, 1)).toBe(late)
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
    const pausing = pause(2 ** 40, controller.signal)
    expect(await within(pausing, 5)).toBe(late)
    controller.abort()
    await pausing
  })

  it('between two tries doubles from 100 ms to 2 s', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 1e9].map(retryPauseMs)).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000])
  })
})

describe('work with a limit', () => {
  it('gives its value or its error, or says that it is late', async () => {
    expect(await within(Promise.resolve('value'), hourMs)).toBe('value')
    await expect(within(Promise.reject(new Error('no')), hourMs)).rejects.toThrow('no')
    expect(await within(never, 1)).toBe(late)
  })
})

describe('a publish with a deadline', () => {
  /** Ends when it is told to, and answers with the reason. */
  const obedient = (signal: AbortSignal): Promise<{ reason: unknown }> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ reason: signal.reason })))

  it('is told to end at its deadline, and what it answers then counts', async () => {
    const answer = await createDeadlines({ ms: 1, graceMs: hourMs }).run(obedient)
    expect(answer).toMatchObject({ reason: { message: 'no answer within 1 ms' } })
  })

  it('is given up when it does not end within the grace', async () => {
    expect(await createDeadlines({ ms: 1, graceMs: 1 }).run(() => never)).toBe(late)
  })

  it('can be told to end earlier, with every other, by whoever stops the relay', async () => {
    const deadlines = createDeadlines({ ms: hourMs, graceMs: 1 })
    const reason = new Error('the relay stops')
    const working = [deadlines.run(obedient), deadlines.run(obedient), deadlines.run(() => never)]
    deadlines.abortAll(reason)
    expect(await Promise.all(working)).toEqual([{ reason }, { reason }, late])
    // What begins afterwards has its own time.
    expect(await deadlines.run((signal) => Promise.resolve({ aborted: signal.aborted }))).toEqual({ aborted: false })
  })

  it('gives its answer or its error when it ends in time', async () => {
    const deadlines = createDeadlines({ ms: hourMs, graceMs: hourMs })
    expect(await deadlines.run(() => Promise.resolve({ acknowledged: 1 }))).toEqual({ acknowledged: 1 })
    await expect(deadlines.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})
