/** Every reason this library gives up, as a closed list. Match on the code, never on message text. */
export type OutboxErrorCode =
  | 'OPTIONS_INVALID'
  | 'FILTER_EMPTY'
  | 'EVENT_INVALID'
  | 'EVENT_ID_CONFLICT'
  | 'EVENT_CRASHED'
  | 'NOT_IN_TRANSACTION'
  | 'NOT_A_TRANSACTION'
  | 'SCHEMA_MISSING'
  | 'SCHEMA_BEHIND'
  | 'SCHEMA_CHANGED'
  | 'SCHEMA_DENIED'
  | 'SCHEMA_HIDDEN'
  | 'TOPICS_OVERLAP'
  | 'NOT_DRAINED'
  | 'TABLE_BUSY'
  | 'DATABASE_UNREACHABLE'
  | 'RELAY_STATE'

/** One thing that is wrong with an option or an event: where, and what. */
export interface Problem {
  /** The option's name, or the JSON pointer to the field of an event. */
  readonly path: string
  readonly message: string
  /** Position of the event in the list that was enqueued. */
  readonly index?: number
}

/** One step of a JSON pointer. */
export function pointerStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

/**
 * What every refusal of this library is. The message says what happened, to which event or option, and what to do;
 * `problems` holds the same in parts when several things are wrong at once.
 */
export class OutboxError extends Error {
  override readonly name: string = 'OutboxError'
  readonly code: OutboxErrorCode
  readonly problems: readonly Problem[]

  constructor(
    code: OutboxErrorCode,
    message: string,
    details: { cause?: unknown; problems?: readonly Problem[] } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.problems = details.problems ?? []
  }
}
