import { at, core, type Mutant, type NamedTest } from '../mutant.ts'

const settle = core('storage/settle.ts')
const acknowledge = core('storage/acknowledge.ts')
const settled = (title: string): NamedTest => at('statements/due-and-settle.test.ts', title)
const acknowledged = (title: string): NamedTest => at('statements/acknowledge.test.ts', title)

const matched =
  '((e.id, e.event_id, e.requeues, e.attempts) in (select * from unnest($5::bigint[], $6::uuid[], $7::int[], $8::int[]))) is true'
const unnested = 'unnest($5::bigint[], $6::uuid[], $7::int[], $8::int[]) u(id, event_id, requeues, attempts)'

/** What is written of an outcome. */
export const settling: readonly Mutant[] = [
  {
    name: 'acknowledged-whatever-the-attempts',
    promise: 'P2',
    breaks: 'A late acknowledgement swallows the retry for which the rest of the key waits.',
    file: acknowledge,
    text: matched,
    becomes: `((e.id, e.event_id, e.requeues) in (select id, event_id, requeues from ${unnested})) is true`,
    test: acknowledged('writes nothing for an event of which somebody counted a failure since'),
  },
  {
    name: 'acknowledged-whatever-the-requeues',
    promise: 'P2',
    breaks: 'An event that an operator put back in line is published by an outcome of its earlier life.',
    file: acknowledge,
    text: matched,
    becomes: `((e.id, e.event_id, e.attempts) in (select id, event_id, attempts from ${unnested})) is true`,
    test: acknowledged('writes nothing for an event that was put back in line since'),
  },
  {
    name: 'acknowledged-by-id-alone',
    promise: 'P2',
    breaks: 'After a failover another event under the same id is taken for published.',
    file: acknowledge,
    text: matched,
    becomes: `((e.id, e.requeues, e.attempts) in (select id, requeues, attempts from ${unnested})) is true`,
    test: acknowledged('marks no other event that came back under the same id'),
  },
  {
    name: 'acknowledgement-waits-for-locks',
    promise: 'P4',
    breaks: 'One row that somebody has locked holds up the outcomes of all other keys.',
    file: acknowledge,
    text: "set_config('lock_timeout', '${String(lockTimeoutMs)}', true)",
    becomes: "set_config('lock_timeout', '0', true)",
    test: at('statements/locked-rows.test.ts', 'ends an acknowledgement soon, which has written nothing'),
  },
  {
    name: 'failure-counted-twice',
    promise: 'P5',
    breaks: 'A failure whose answer got lost is counted again.',
    file: settle,
    text: 'and lck.requeues = x.requeues and lck.attempts = x.attempts\n',
    becomes: 'and lck.requeues = x.requeues\n',
    test: settled('counts a failure once, however often it is sent'),
  },
  {
    name: 'failure-of-a-former-owner',
    promise: 'P5',
    breaks: 'A relay that lost its slot spends attempts of events that belong to another one.',
    file: settle,
    text: 'and (x.error is null or ((lck.lane >> 56) + 128)::int = any(array(select slot from own)))',
    becomes: '',
    test: settled('counts no failure for a slot that is not owned under the same epoch'),
  },
  {
    name: 'acknowledgement-of-a-former-owner-dropped',
    promise: 'copies',
    breaks: 'What a relay published before it lost its slot is published again.',
    file: settle,
    text: 'and (x.error is null or ((lck.lane >> 56)',
    becomes: 'and (false or ((lck.lane >> 56)',
    test: settled('records an acknowledgement whoever owns the slot now'),
  },
  {
    name: 'settle-waits-for-locks',
    promise: 'P4',
    breaks: 'One row that somebody has locked holds up the outcomes of all other keys.',
    file: settle,
    text: 'order by e.id for update skip locked)',
    becomes: 'order by e.id for update)',
    test: at('statements/locked-rows.test.ts', 'is passed over by settle'),
  },
  {
    name: 'locked-row-taken-for-settled',
    promise: 'copies',
    breaks: 'The outcome of an event that somebody had locked is never written.',
    file: core('relay/settler.ts'),
    text: 'if (locked.length > 0) park(',
    becomes: 'if (locked.length > 999) park(',
    test: at('relay/lock-timeouts.test.ts', 'an event that somebody has locked delays only itself'),
  },
  {
    name: 'gone-row-taken-for-locked',
    promise: 'P2',
    breaks: 'A key waits for ever for a row that somebody deleted.',
    file: settle,
    text: 'case when (select count(*) from lck) < cardinality($5) then (',
    becomes: 'case when (select count(*) from lck) < 0 then (',
    test: at('operate/discard.test.ts', 'of an event that is being refused leaves its key going'),
  },
  {
    name: 'end-told-to-nobody',
    promise: 'P2',
    breaks: 'An event fails for good, the answer gets lost, and nobody hears of it.',
    file: settle,
    text: 'from f union all select id from again) c',
    becomes: 'from f) c',
    test: at('relay/lost-answers.test.ts', 'tells exactly once that the event is given up'),
  },
]
