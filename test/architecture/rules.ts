import { basename, dirname } from 'node:path/posix'
import { codeLinesIn, identifiersIn, literalsIn, specifiersIn, statementsBesideReExports } from './source-text.ts'

// Every rule is a pure function of a path and a content, and returns what is wrong with it in words.
export type Rule = (path: string, content: string) => string[]

const MAX_CODE_LINES = 250

const SQL_HOMES = /^packages\/core\/src\/(storage|migrations)\//
const TIMER_HOMES = /^packages\/core\/src\/relay\/(relay|pace)\.ts$/

// In capitals a word is enough. In small letters it takes more of the statement, because prose begins with the same
// words. BEGIN, COMMIT, SET, LISTEN and their like are free: sessions and transactions are what a client is for.
const SQL_IN_CAPITALS =
  /^\s*(--.*\n\s*)*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|TRUNCATE|LOCK|NOTIFY|VALUES|CALL|DO|COPY|EXPLAIN|VACUUM|ANALYZE|GRANT)\s/
const SQL_IN_SMALL_LETTERS =
  /^\s*(select\s[\s\S]*\bfrom\b|insert into\s|update\s\S+\s+(as\s+\S+\s+)?set\s|delete from\s|with\s+(recursive\s+)?\w+\s+as\s*\(|(create|alter|drop)\s+(table|schema|index|unique index|type|view|function|sequence)\s|truncate\s+table\s|lock\s+table\s|select\s+\w+\()/

export const sqlFaults: Rule = (path, content) => {
  if (!/^packages\/[^/]+\/src\//.test(path) || SQL_HOMES.test(path)) return []
  return literalsIn(content)
    .filter((literal) => SQL_IN_CAPITALS.test(literal) || SQL_IN_SMALL_LETTERS.test(literal))
    .map((literal) => `${path}: SQL outside storage and migrations: ${literal.trim().split('\n')[0] ?? ''}`)
}

export const timerFaults: Rule = (path, content) => {
  if (!path.startsWith('packages/core/src/') || TIMER_HOMES.test(path)) return []
  const timers = [...identifiersIn(content)].filter((name) => name === 'setTimeout' || name === 'setInterval')
  const modules = [...specifiersIn(content)].filter((name) => /^(node:)?timers(\/promises)?$/.test(name))
  return [...timers, ...modules].map((name) => `${path}: ${name} outside relay/relay.ts and relay/pace.ts`)
}

const KEBAB = /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/
const CAPITALS = /^([A-Z]+(\.md)?|Dockerfile)$/
const SAYS_NOTHING = /^(utils?|helpers?|common|misc|jobs?|tasks?|managers?|services?|data|infos?)$/
const SAYS_NOTHING_ALONE = /^(types?|lib|libs|shared|constants|functions)$/

export const nameFaults: Rule = (path) => {
  const faults: string[] = []
  const folders = dirname(path) === '.' ? [] : dirname(path).split('/')
  const file = basename(path)
  if (!KEBAB.test(file) && !CAPITALS.test(file)) faults.push(`${path}: a file is named in kebab-case`)
  for (const part of [...folders, file]) {
    const name = part.replace(/^\./, '').split('.')[0] ?? ''
    const empty = SAYS_NOTHING_ALONE.test(name) || name.split('-').some((word) => SAYS_NOTHING.test(word))
    if (empty) faults.push(`${path}: "${name}" does not say what is inside`)
  }
  return faults
}

export const sizeFaults: Rule = (path, content) => {
  const lines = codeLinesIn(content)
  return lines > MAX_CODE_LINES ? [`${path}: ${lines} lines of code, ${MAX_CODE_LINES} is the most`] : []
}

export const indexFaults: Rule = (path, content) => {
  if (basename(path) !== 'index.ts') return []
  return statementsBesideReExports(content).map((line) => `${path}: an index only re-exports, but has: ${line}`)
}
