import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Defines } from './spin.ts'

/** A rule of the relay or of its statements, and what happens without it. */
export interface Rule {
  /** Also the name of its trace in traces/. */
  readonly name: string
  readonly rule: string
  /** The name in the model that takes it away. */
  readonly without: string
  /** The smallest world in which that shows. */
  readonly within: Defines
  /** A test that constructs it against a real server, in this file under this name. */
  readonly test: { readonly file: string; readonly title: string }
}

/** Names a test of core. */
export const at = (file: string, title: string): Rule['test'] => ({ file: `packages/core/test/${file}`, title })

/** Whether the file of that test has one with this title. */
export function hasTest({ test }: Rule): boolean {
  const path = fileURLToPath(new URL(`../${test.file}`, import.meta.url))
  if (!existsSync(path)) return false
  const text = readFileSync(path, 'utf8')
  return [`'${test.title}'`, `"${test.title}"`].some((quoted) => text.includes(quoted))
}
