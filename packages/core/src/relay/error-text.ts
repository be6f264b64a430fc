/** What PostgreSQL stores and a person reads; longer text says nothing more. */
const maxCharacters = 2000

/** The text of a failure: always storable, without secrets, cut on a whole character. */
export function errorText(cause: unknown): string {
  const parts: string[] = []
  let current = cause
  for (let depth = 0; depth < 4 && current !== undefined && current !== null; depth++) {
    parts.push(describe(current))
    current = current instanceof Error ? current.cause : undefined
  }
  const text = redact(parts.join(' < ') || 'unknown error')
    .toWellFormed()
    .replaceAll('\0', '\uFFFD')
  const characters = Array.from(text.slice(0, maxCharacters * 2))
  return characters.length <= maxCharacters
    ? characters.join('')
    : `${characters.slice(0, maxCharacters - 1).join('')}…`
}

function describe(value: unknown): string {
  try {
    if (value instanceof Error) {
      const code = 'code' in value && typeof value.code === 'string' ? ` [${value.code}]` : ''
      return `${value.name}${code}: ${value.message}`
    }
    return typeof value === 'string' ? value : JSON.stringify(value)
  } catch {
    return 'an error that cannot be shown'
  }
}

/** Credentials in URLs, bearer tokens and the values of fields that are called like secrets. */
function redact(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^/\s@]*@/gi, '$1***@')
    .replace(/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 ***')
    .replace(/\b(password|passwd|secret|token|api[-_]?key)(["']?\s*[:=]\s*["']?)[^\s"',;&]+/gi, '$1$2***')
}
