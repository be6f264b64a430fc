import type { Names } from '../storage/names.ts'

/**
 * One step of the schema's history. Its name and its statements never change once released; there is no way down.
 * A step that is not transactional (VACUUM) must be harmless to run twice.
 */
export interface Migration {
  readonly name: string
  readonly transactional: boolean
  statements(names: Names): readonly string[]
}

/** A body in dollar quotes that nothing in it can end, a schema of any name included. */
export function quoteBody(body: string): string {
  let tag = '$inorder$'
  for (let number = 1; body.includes(tag); number++) tag = `$inorder${String(number)}$`
  return `${tag}${body}${tag}`
}
