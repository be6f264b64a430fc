import { createOutbox, fromPg, OutboxError } from '@inorder/core'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting } from '../tempo.ts'

// What the next release may add: columns with a default, indexes, tables, a step in the list. Never less.
const nextReleaseSql = `
alter table outbox.events add column next_release text not null default 'unused';
create index by_next_release on outbox.events (next_release) where next_release <> 'unused';
create table outbox.next_release (id bigint primary key);
insert into outbox.migrations (name) values ('9999-next-release');
update outbox.settings set version = version + 1;`

/** The schema is one release ahead of the relays and writers, which go on and restart on it one after another. */
export const rollingUpgrade: Campaign = {
  name: 'rolling-upgrade',
  about: 'the schema moves a release ahead under relays and writers, which go on and restart',
  async disturb(stage, until) {
    const { db, faults, say, writers } = stage
    await refuseOlderSchema(stage)
    await writers.written(20)
    say('the schema moves a release ahead')
    faults.strike('schema moved ahead')
    await db.query(nextReleaseSql)
    await writers.written(20)
    do await restartEach(stage)
    while (await lasting(500, until))
  },
}

async function restartEach({ relays, faults, random }: Stage): Promise<void> {
  for (const name of relays.names) {
    if (random.chance(0.5)) await relays.stop(name)
    else await relays.kill(name)
    await relays.start()
    faults.strike('relay restarted')
  }
}

/** A relay that needs a step which the schema has not must not start, and must say which one. */
async function refuseOlderSchema({ postgres, troubles, faults }: Stage): Promise<void> {
  const pool = new pg.Pool({ connectionString: await postgres.createDatabase('older'), max: 8 })
  const outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  const { rows } = await pool.query<{ name: string }>(
    'delete from outbox.migrations where name = (select max(name) from outbox.migrations) returning name',
  )
  const missing = rows[0]?.name ?? ''
  faults.strike('schema behind')
  const refusal = await outbox
    .relay({ publisher: memoryPublisher(memoryBroker()) })
    .start()
    .catch((error: unknown) => error)
  const said = refusal instanceof OutboxError && refusal.code === 'SCHEMA_BEHIND' && refusal.message.includes(missing)
  if (!said) troubles.push(`a relay that needs ${missing} met a schema without it: ${String(refusal)}`)
  await outbox.close()
  await pool.end()
}
