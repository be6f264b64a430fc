import { OutboxError, type Problem } from '../contract/errors.ts'
import type { EventRegistry } from '../contract/event-registry.ts'
import type { NewEvent } from '../storage/insert-events.ts'
import { readBack, typeEvent } from './typed-event.ts'
import { checkEvent, type EventInput, type EventLimits } from './validate-event.ts'

/**
 * Checks all events of a call against the schemas of a registry, if there is one, and turns them into what is written. No
 * SQL: a transaction is as usable as before.
 *
 * @throws OutboxError EVENT_INVALID with every problem of every event, and as its cause what a schema or a key function
 *   threw.
 */
export async function checkEvents(
  inputs: readonly EventInput[],
  limits: EventLimits,
  registry: EventRegistry | undefined,
): Promise<NewEvent[]> {
  if (registry === undefined) return checkPlainEvents(inputs, limits)
  const outcomes: Outcome[] = []
  for (const input of inputs) outcomes.push(await checkTyped(input, limits, registry))
  return allOrNone(outcomes)
}

/** The same without schemas, and at once: the statement can be sent before whatever the caller does next. */
export function checkPlainEvents(inputs: readonly EventInput[], limits: EventLimits): NewEvent[] {
  return allOrNone(inputs.map((input) => checkEvent(input, limits)))
}

function allOrNone(outcomes: readonly Outcome[]): NewEvent[] {
  const events: NewEvent[] = []
  const problems: Problem[] = []
  const causes: unknown[] = []
  for (const [index, checked] of outcomes.entries()) {
    if ('event' in checked) events.push(checked.event)
    else problems.push(...checked.problems.map((problem) => ({ ...problem, index })))
    if ('cause' in checked) causes.push(checked.cause)
  }
  if (problems.length === 0) return events
  const shown = problems.slice(0, 10).map(({ index, path, message }) => `event ${String(index)}: ${path} ${message}`)
  if (problems.length > shown.length) shown.push(`and ${String(problems.length - shown.length)} more`)
  throw new OutboxError('EVENT_INVALID', `Nothing was enqueued: ${shown.join('; ')}`, {
    problems,
    ...(causes.length === 0 ? {} : { cause: causes[0] }),
  })
}

type Outcome = { readonly event: NewEvent } | { readonly problems: readonly Problem[]; readonly cause?: unknown }

async function checkTyped(input: EventInput, limits: EventLimits, registry: EventRegistry): Promise<Outcome> {
  const typed = await typeEvent(input, registry)
  if ('problems' in typed) return typed
  const checked = checkEvent(typed.input, limits)
  if ('problems' in checked) return checked
  return (await readBack(checked.event, registry, limits)) ?? checked
}
