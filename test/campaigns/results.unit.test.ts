import { expect, test } from 'vitest'
import { replaceTable } from './readme-table.ts'
import { resultsTable } from './results.ts'

const result = {
  on: '2026-01-01',
  minutes: 2.5,
  campaign: 'kill-relays',
  seed: 1,
  seconds: 160,
  ok: true,
  transactions: 500,
  unknownCommits: 0,
  events: 12_345,
  deliveries: 12_350,
  faults: { 'relay killed': 7 },
  lost: 0,
  outOfOrder: 0,
  pairs: 1_000_000,
  explained: { 'was killed with it in flight': 5 },
  duplicates: 5,
  unexplained: 0,
  phantoms: 0,
  forgotten: 0,
  attempts: { rejected: 3, unavailable: 2, unknown: 0, counted: 3 },
  leasesLost: 0,
  writerErrors: {},
  quietMs: 80,
  broken: [],
}

test('the table takes the place of the one before it and leaves the text around it', () => {
  const page = (table: string): string =>
    `# Title\n\n<!-- results: written by --save -->\n${table}<!-- end of results -->\n\nThe end.\n`
  const once = replaceTable(page(''), resultsTable([result]))
  expect(once.split('\n')).toEqual([
    '# Title',
    '',
    '<!-- results: written by --save -->',
    '',
    '| campaign | minutes | events | faults | lost | out of order | duplicates explained | unexplained |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    '| kill-relays | 2.5 | 12,345 | 7 relay killed | 0 | 0 of 1,000,000 pairs | 5 | 0 |',
    '',
    '<!-- end of results -->',
    '',
    'The end.',
    '',
  ])
  expect(replaceTable(replaceTable(page('old\n'), ''), resultsTable([result]))).toBe(once)
})
