import { pointerStep, type Problem } from './errors.ts'

/**
 * A schema as Standard Schema has it (version 1), which zod, valibot, arktype and others implement. Only its shape is
 * needed, so no library is. `Input` is what may be passed in, `Output` what comes out: defaults filled in, transformed.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a schema takes. */
export type InputOf<Schema> = Schema extends StandardSchema<infer Input, infer _> ? Input : never

/** What a schema gives. */
export type OutputOf<Schema> = Schema extends StandardSchema<infer _, infer Output> ? Output : never

/** A value as a schema sees it. `threw` is a fault of the schema, the other two are about the value. */
export type Validation =
  | { readonly kind: 'valid'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] }
  | { readonly kind: 'threw'; readonly cause: unknown }

/** Asks a schema about a payload, and waits for one that answers later. Never rejects. */
export async function validate(schema: StandardSchema, payload: unknown): Promise<Validation> {
  try {
    const result = await schema['~standard'].validate(payload)
    if (result.issues === undefined) return { kind: 'valid', value: result.value }
    return { kind: 'invalid', problems: result.issues.map(toProblem) }
  } catch (cause) {
    return { kind: 'threw', cause }
  }
}

function toProblem({ path = [], message }: StandardIssue): Problem {
  // Not `map`: the path of arktype is a list of a kind of its own, which makes another one of those.
  const steps = Array.from(path, (step) => String(typeof step === 'object' ? step.key : step))
  return { path: ['/payload', ...steps.map(pointerStep)].join('/'), message }
}
