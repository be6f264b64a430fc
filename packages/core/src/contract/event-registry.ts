import { OutboxError, type Problem } from './errors.ts'
import {
  functionOption,
  objectOption,
  type OptionTable,
  optionProblems,
  refuseProblems,
  required,
  textOption,
} from './option-table.ts'
import { type OutputOf, type StandardSchema, validate } from './standard-schema.ts'

/** The schema of every name in a registry. */
export type EventSchemas = Readonly<Record<string, StandardSchema>>

/** What is known of the events of one name. */
export interface EventDefinition<Schema extends StandardSchema = StandardSchema> {
  /**
   * Where they go. The name is then their type. Default: the name itself, for events that are called by their topic, or
   * by one name that is both.
   */
  readonly topic?: string
  /** What their payload must be: any Standard Schema (zod, valibot, arktype), an asynchronous one too. */
  readonly schema: Schema
  /** What must stay in order, of the payload as the schema gives it; null is unordered. Not asked about a tombstone. */
  readonly key: (payload: NonNullable<OutputOf<Schema>>) => string | null
}

/** An event to decode: an `OutboxEvent`, or what a consumer took from the wire. */
export interface EncodedEvent {
  readonly topic: string
  readonly type?: string | null
  readonly payload: Uint8Array | null
  /** Default `application/json`. */
  readonly contentType?: string
  readonly eventId?: string
}

/** The same event with its name in the registry and its payload as the schema gives it. */
export type DecodedEvent<Schemas extends EventSchemas, Event = EncodedEvent> = {
  [Name in keyof Schemas & string]: Omit<Event, 'payload'> & {
    readonly name: Name
    readonly payload: OutputOf<Schemas[Name]>
  }
}[keyof Schemas & string]

/** Turns stored bytes back into a payload. The counterpart of the outbox's `serialize`. */
export type Parse = (bytes: Uint8Array, contentType: string) => unknown

/** All events of an application: the producer enqueues by it, the consumer decodes by it. */
export interface EventRegistry<Schemas extends EventSchemas = EventSchemas> {
  readonly definitions: { readonly [Name in keyof Schemas]: EventDefinition<Schemas[Name]> }
  readonly parse: Parse
  /**
   * The payload of an event by its type, or by its topic where its type is not registered. Narrow the answer by `name`.
   *
   * @throws OutboxError EVENT_INVALID with one problem per field: not registered, no JSON, a payload that the schema
   *   refuses. It has a cause when the schema or a `parse` of your own threw.
   */
  decode<Event extends EncodedEvent>(event: Event): Promise<DecodedEvent<Schemas, Event>>
}

export type DefinitionsOf<Schemas extends EventSchemas> = {
  readonly [Name in keyof Schemas]: EventDefinition<Schemas[Name]>
}

const definitionTable: OptionTable = {
  topic: textOption({ maxBytes: 255 }),
  schema: required({ check: whyNoSchema }),
  key: required(functionOption()),
}

/**
 * Names every event of an application once: its schema, its key, its topic. Given to `createOutbox`, no call site can
 * forget a key or pass another payload; given to a consumer, it gets what was meant.
 *
 * @example
 * const events = defineEvents({
 *   'order.placed': { topic: 'orders', schema: z.object({ id: z.string() }), key: (order) => order.id },
 * })
 * const outbox = createOutbox({ client: fromPg(pool), events })
 * await outbox.enqueue(tx, { type: 'order.placed', payload: { id: 'order-1' } })
 *
 * @throws OutboxError OPTIONS_INVALID with every problem in one error.
 */
export function defineEvents<Schemas extends EventSchemas>(
  definitions: DefinitionsOf<Schemas>,
  options: { readonly parse?: Parse } = {},
): EventRegistry<Schemas> {
  const problems: Problem[] = optionProblems(options, { parse: functionOption() })
  const wrong = objectOption().check(definitions)
  if (wrong !== undefined) problems.push({ path: 'definitions', message: wrong })
  for (const [name, definition] of Object.entries({ ...definitions }) as [string, EventDefinition][]) {
    const wrongName = textOption({ maxBytes: 255 }).check(name)
    if (wrongName !== undefined) problems.push({ path: name, message: `is a name that ${wrongName}` })
    for (const { path, message } of optionProblems(definition, definitionTable))
      problems.push({ path: `${name}.${path}`, message })
  }
  refuseProblems('defineEvents', problems)
  const registry: EventRegistry = {
    definitions: { ...definitions },
    parse: options.parse ?? parseUsual,
    async decode(event) {
      const read = await readPayload(registry, event)
      if (!('problems' in read)) return { ...event, name: read.name, payload: read.payload }
      const which = event.eventId === undefined ? 'An event' : `The event ${event.eventId}`
      throw new OutboxError(
        'EVENT_INVALID',
        `${which} of topic ${event.topic} could not be decoded: ${read.problems.map(({ path, message }) => `${path} ${message}`).join('; ')}`,
        { problems: read.problems, ...('cause' in read ? { cause: read.cause } : {}) },
      )
    },
  }
  return registry as EventRegistry<Schemas>
}

/** The name under which an event is registered: its type, then its topic. */
export function nameIn({ definitions }: EventRegistry, type: unknown, topic: unknown): string | undefined {
  return [type, topic].find((name): name is string => typeof name === 'string' && Object.hasOwn(definitions, name))
}

/** A payload that was read, or why not. With a cause the fault is the schema's or the parser's. */
export type Reading =
  | { readonly name: string; readonly payload: unknown }
  | { readonly problems: readonly Problem[]; readonly cause?: unknown }

/** What `decode` does, without throwing. */
export async function readPayload(registry: EventRegistry, event: EncodedEvent): Promise<Reading> {
  const name = nameIn(registry, event.type, event.topic)
  const definition = name === undefined ? undefined : registry.definitions[name]
  if (name === undefined || definition === undefined)
    return { problems: [{ path: '/type', message: 'is not registered, and neither is the topic' }] }
  let value: unknown = null
  try {
    if (event.payload !== null) value = registry.parse(event.payload, event.contentType ?? 'application/json')
  } catch (cause) {
    const problems = [{ path: '/payload', message: `could not be parsed: ${textOf(cause)}` }]
    // Text that is no JSON is a fault of the text. What another parser threw may be anything.
    return registry.parse === parseUsual ? { problems } : { problems, cause }
  }
  const validation = await validate(definition.schema, value)
  if (validation.kind === 'valid') return { name, payload: validation.value }
  if (validation.kind === 'invalid') return { problems: validation.problems }
  const { cause } = validation
  return { problems: [{ path: '/payload', message: `made the schema of ${name} throw: ${textOf(cause)}` }], cause }
}

/** Text that is called JSON by its content type is parsed; other bytes are the payload. */
function parseUsual(bytes: Uint8Array, contentType: string): unknown {
  if (!/[/+]json\b/i.test(contentType)) return bytes
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}

export function textOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message
  return typeof cause === 'object' && cause !== null ? 'an object that is no error' : String(cause)
}

/** Schemas of arktype are functions. */
function whyNoSchema(value: unknown): string | undefined {
  const has = (typeof value === 'object' && value !== null) || typeof value === 'function'
  const standard = has ? (value as Partial<StandardSchema>)['~standard'] : undefined
  return typeof standard?.validate === 'function' ? undefined : 'must be a Standard Schema'
}
