/** What PostgreSQL stores and a person reads; longer text says nothing more. */
const maxCharacters = 2000

/** What is looked at of each part: a broker may echo a whole payload, and looking for secrets takes time. */
const maxRead = 4 * maxCharacters

/** The text of a failure: always storable, without secrets, cut on a whole character. */
export function errorText(cause: unknown): string {
  const parts: string[] = []
  let current = cause
  for (let depth = 0; depth < 4 && current !== undefined && current !== null; depth++) {
    parts.push(describe(current).slice(0, maxRead))
    current = causeOf(current)
  }
  const text = redact(parts.join(' < ') || 'unknown error')
    .toWellFormed()
    .replaceAll('\0', '\uFFFD')
  const characters = Array.from(text.slice(0, maxCharacters * 2))
  return characters.length <= maxCharacters
    ? characters.join('')
    : `${characters.slice(0, maxCharacters - 1).join('')}…`
}

/** An error of somebody else's may do anything when it is looked at. */
function causeOf(value: unknown): unknown {
  try {
    return value instanceof Error ? value.cause : undefined
  } catch {
    return undefined
  }
}

function describe(value: unknown): string {
  try {
    if (value instanceof Error) {
      const code = 'code' in value && typeof value.code === 'string' ? ` [${value.code}]` : ''
      return `${value.name}${code}: ${value.message}`
    }
    if (typeof value === 'function') return 'a function'
    if (typeof value === 'object') return textOfObject(value)
    return typeof value === 'symbol' ? value.toString() : `${value as string | number | bigint | boolean}`
  } catch {
    return 'an error that cannot be shown'
  }
}

/** An object has no text where its `toJSON` gives nothing, whatever the type of JSON.stringify says. */
function textOfObject(value: object | null): string {
  const text: unknown = JSON.stringify(value)
  return typeof text === 'string' ? text : 'an error without a text'
}

/**
 * Takes out credentials in URLs, and the values of fields, parameters and headers that are called like secrets. Rather
 * too much than too little: a text that lost a harmless word still tells what went wrong.
 */
function redact(text: string): string {
  return text
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)\S{0,512}@/gi, '$1***@')
    .replace(/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 ***')
    .replace(secretField, '$1$2***')
}

/** A name with one of these words in it, `=` or `:`, and a value: quoted, or up to the next separator. */
const secretField =
  /([\w-]{0,40}(?:password|passwd|secret|token|api[-_]?key|access[-_]?key|account[-_]?key|signature|authorization)[\w-]{0,40})(["']?\s{0,8}[:=]\s{0,8})(?:"[^"]*"?|'[^']*'?|(?:bearer|basic)\s+\S+|[^\s"',;&]+)/gi
