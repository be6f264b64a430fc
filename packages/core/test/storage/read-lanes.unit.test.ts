import { expect, it } from 'vitest'
import { readLanes } from '../../src/storage/find.ts'

/** A row of an answer: its lane, the first id of the lane, and thirteen columns of an event. */
function row(lane: string, id: string): readonly (string | null)[] {
  return [lane, null, id, `event-${id}`, 'orders', 'k', null, 'text/plain', '{}', '0', '0', '0', '0', null, null]
}

it('a lane of an answer is in the order of the ids, whatever order its rows came in', () => {
  const rows = [
    row('7', '10'),
    row('8', '1'),
    row('7', '9'),
    row('7', '9007199254740993'),
    row('7', '9007199254740992'),
  ]
  const lanes = readLanes(rows, 0, 1, 2)
  expect(lanes.map((lane) => [lane.lane, lane.rows.map(({ id }) => id)])).toEqual([
    ['7', ['9', '10', '9007199254740992', '9007199254740993']],
    ['8', ['1']],
  ])
})
