import { OutboxError, type Problem } from './errors.ts'

/** What one option may be. A checker returns what is wrong with a value, or undefined. */
export interface OptionRule {
  readonly check: (value: unknown) => string | undefined
  readonly required?: boolean
}

/** One line per option of a package: the only place that says which names exist and which values they take. */
export type OptionTable = Readonly<Record<string, OptionRule>>

export function numberOption(limits: { min: number; max?: number; integer?: boolean; infinite?: boolean }): OptionRule {
  const { min, max = Number.MAX_SAFE_INTEGER, integer = true, infinite = false } = limits
  const wanted = `${integer ? 'a whole number' : 'a number'} from ${String(min)} to ${String(max)}${infinite ? ', or Infinity' : ''}`
  return {
    check(value) {
      if (typeof value !== 'number' || Number.isNaN(value)) return `must be ${wanted}`
      if (value === Infinity && infinite) return undefined
      if (value < min || value > max || (integer && !Number.isInteger(value))) return `must be ${wanted}`
      return undefined
    },
  }
}

export function choiceOption(...choices: readonly string[]): OptionRule {
  return {
    check: (value) =>
      choices.includes(value as string) ? undefined : `must be one of ${choices.map(quote).join(', ')}`,
  }
}

export function flagOption(): OptionRule {
  return { check: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false') }
}

export function functionOption(): OptionRule {
  return { check: (value) => (typeof value === 'function' ? undefined : 'must be a function') }
}

export function textOption(limits: { maxBytes: number }): OptionRule {
  return {
    check(value) {
      if (typeof value !== 'string' || value === '') return 'must be a non-empty string'
      if (value.includes('\0') || !value.isWellFormed()) return 'must be well-formed text without NUL'
      if (Buffer.byteLength(value) > limits.maxBytes) return `must be at most ${String(limits.maxBytes)} bytes of UTF-8`
      return undefined
    },
  }
}

/** A name that is safe in logs, in names of connections and of queues. */
export function nameOption(): OptionRule {
  return {
    check(value) {
      const fits = typeof value === 'string' && /^[\w.-]{1,64}$/.test(value)
      return fits ? undefined : 'must be 1 to 64 letters, digits, dots, underscores or hyphens'
    },
  }
}

export function listOption(element: OptionRule): OptionRule {
  return {
    check(value) {
      if (!Array.isArray(value) || value.length === 0) return 'must be a non-empty list'
      for (const entry of value) {
        const wrong = element.check(entry)
        if (wrong !== undefined) return `every entry ${wrong}`
      }
      return undefined
    },
  }
}

/** An object with at least these members, such as a client of the user's. */
export function objectOption(...members: readonly string[]): OptionRule {
  return {
    check(value) {
      if (typeof value !== 'object' || value === null) return 'must be an object'
      const missing = members.filter((member) => !(member in value))
      return missing.length === 0 ? undefined : `must have ${missing.join(', ')}`
    },
  }
}

export function required(rule: OptionRule): OptionRule {
  return { ...rule, required: true }
}

/** Says everything that is wrong with `given`: unknown names, missing ones and bad values. */
export function optionProblems(given: object, table: OptionTable): Problem[] {
  if (typeof given !== 'object' || (given as unknown) === null)
    return [{ path: 'options', message: `must be an object, got ${show(given)}` }]
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(table, name) ? table[name] : undefined
    if (rule === undefined)
      problems.push({ path: name, message: `is not an option; the options are ${Object.keys(table).join(', ')}` })
    else if (value !== undefined) {
      const wrong = rule.check(value)
      if (wrong !== undefined) problems.push({ path: name, message: `${wrong}, got ${show(value)}` })
    }
  }
  for (const [name, rule] of Object.entries(table)) {
    if (rule.required === true && (given as Record<string, unknown>)[name] === undefined)
      problems.push({ path: name, message: 'is required' })
  }
  return problems
}

/**
 * Refuses `given` when anything is wrong with it.
 *
 * @throws OutboxError OPTIONS_INVALID with one problem per option, all of them in one error.
 */
export function checkOptions(owner: string, given: object, table: OptionTable): void {
  refuseProblems(owner, optionProblems(given, table))
}

export function refuseProblems(owner: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const lines = problems.map(({ path, message }) => `${path} ${message}`)
  throw new OutboxError('OPTIONS_INVALID', `${owner}: ${lines.join('; ')}`, { problems })
}

function quote(text: string): string {
  return `'${text}'`
}

/** A value as a person would recognise it, short enough for an error line. */
function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `'${value.slice(0, 60)}…'` : `'${value}'`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object'
  return String(value)
}
