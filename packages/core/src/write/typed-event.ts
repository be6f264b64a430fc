import type { Problem } from '../contract/errors.ts'
import {
  type EventDefinition,
  type EventRegistry,
  type EventSchemas,
  nameIn,
  readPayload,
  textOf,
} from '../contract/event-registry.ts'
import { type InputOf, type StandardSchema, validate } from '../contract/standard-schema.ts'
import type { NewEvent } from '../storage/insert-events.ts'
import { encodePayload } from './payload.ts'
import type { EventInput, EventLimits } from './validate-event.ts'

/** What an application enqueues when its outbox has a registry: topic and key come from there. */
export type TypedInput<Schemas extends EventSchemas> = {
  [Name in keyof Schemas & string]: TypedName<Name> &
    TypedPayload<Schemas[Name]> &
    Omit<EventInput, 'topic' | 'type' | 'key' | 'payload'>
}[keyof Schemas & string]

/** The name as the type of the event. As its topic only where the registry gives it no other. */
type TypedName<Name extends string> =
  | { readonly type: Name; readonly topic?: string }
  | { readonly type?: undefined; readonly topic: Name }

/** A tombstone, where the schema takes null, has nothing that its key could be taken from. */
type TypedPayload<Schema extends StandardSchema> =
  | { readonly payload: NonNullable<InputOf<Schema>>; readonly key?: undefined }
  | (null extends InputOf<Schema> ? { readonly payload: null; readonly key: string | null } : never)

/** What `enqueue` takes with a registry, and without one. */
export type InputFor<Schemas extends EventSchemas> = [Schemas] extends [never] ? EventInput : TypedInput<Schemas>

interface Refusal {
  readonly problems: readonly Problem[]
  /** What a function of the registry threw. */
  readonly cause?: unknown
}

/** An event with the topic and the key that the registry gives it, and its payload as the schema gives it. No I/O. */
export async function typeEvent(
  input: Partial<EventInput>,
  registry: EventRegistry,
): Promise<Refusal | { readonly input: EventInput }> {
  if (typeof input !== 'object' || (input as unknown) === null) return refused('', 'must be an object')
  const name = nameIn(registry, input.type, input.topic)
  const definition = name === undefined ? undefined : registry.definitions[name]
  if (name === undefined || definition === undefined) {
    const names = Object.keys(registry.definitions).join(', ')
    return refused('/type', `is not registered, and neither is the topic; there are: ${names}`)
  }
  const topic = input.topic ?? definition.topic ?? name
  if (definition.topic !== undefined && topic !== definition.topic)
    return refused('/topic', `must be left out: ${name} goes to ${definition.topic}`)
  const validation = await validate(definition.schema, input.payload)
  if (validation.kind === 'invalid') return { problems: validation.problems }
  if (validation.kind === 'threw') return threw('/payload', `the schema of ${name}`, validation.cause)
  const payload = validation.value
  const found = keyOf(definition, name, payload, input.key)
  return 'problems' in found ? found : { input: { ...input, topic, payload, ...found } }
}

function keyOf(
  definition: EventDefinition,
  name: string,
  payload: unknown,
  given: string | null | undefined,
): Refusal | { readonly key: string | null } {
  if (payload === null || payload === undefined) {
    return given === undefined
      ? refused('/key', `is missing: a tombstone has no payload that the key of ${name} could be taken from`)
      : { key: given }
  }
  if (given !== undefined) return refused('/key', `must be left out: it is taken from the payload of ${name}`)
  try {
    const key: unknown = definition.key(payload)
    if (key === null || typeof key === 'string') return { key }
    return refused('/key', `of ${name} must be a string or null, got ${typeof key}`)
  } catch (cause) {
    return threw('/key', `the key function of ${name}`, cause)
  }
}

function refused(path: string, message: string): Refusal {
  return { problems: [{ path, message }] }
}

function threw(path: string, what: string, cause: unknown): Refusal {
  return { ...refused(path, `made ${what} throw: ${textOf(cause)}`), cause }
}

/**
 * Whether the consumer will get what was enqueued: reads the stored bytes back through the schema, and compares. A date
 * that JSON turns into text, or a transformation that does not take its own result, would otherwise be found out by
 * every consumer, and not by the producer. Costs a second validation.
 */
export async function readBack(
  event: NewEvent,
  registry: EventRegistry,
  { serialize }: EventLimits,
): Promise<Refusal | undefined> {
  const read = await readPayload(registry, event)
  if ('problems' in read) {
    const problems = read.problems.map(({ path, message }) => ({
      path,
      message: `cannot be read back by its own schema once it is stored: ${message}`,
    }))
    return { ...read, problems }
  }
  // What a serializer of the user's makes may differ each time; that it can be read has been seen.
  if (serialize !== undefined || event.payload === null) return undefined
  const again = encodePayload(read.payload, undefined)
  const same = 'encoded' in again && Buffer.compare(event.payload, again.encoded.bytes ?? new Uint8Array()) === 0
  return same
    ? undefined
    : refused('/payload', `is another value when it is read back: the schema of ${read.name} changes its own result`)
}
