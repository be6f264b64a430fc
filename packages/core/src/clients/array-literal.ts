/**
 * A value as every library passes it on unchanged: an array becomes the text of a PostgreSQL array, because libraries
 * disagree about arrays, and most about arrays of bytes. Everything else stays.
 */
export function asParameter(value: unknown): unknown {
  return Array.isArray(value) ? `{${value.map(element).join(',')}}` : value
}

function element(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (value instanceof Uint8Array) return `"\\\\x${hex(value)}"`
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`
  return `${value as number | bigint | boolean}`
}

function hex({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}
