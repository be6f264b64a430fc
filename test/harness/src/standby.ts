import { execFile } from 'node:child_process'
import { chownSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type pg from 'pg'
import { clusterIn, type PostgresServer, startCluster, withClient } from './postgres.ts'
import type { ServerUser } from './server-folder.ts'

export interface StandbyOptions {
  /** The port on which it reaches its primary: that of a proxy which can hold the WAL back. Default: the primary's own. */
  via?: number
  /** More server settings, as in postgresql.conf. */
  settings?: Record<string, string>
}

export interface StandbyServer extends PostgresServer {
  /** Makes it a primary with what it has received so far. Resolves when it takes writes. */
  promote(): Promise<void>
}

/**
 * Starts a private PostgreSQL that follows another one of this process, by a copy of its files in backup mode. Files may
 * not vanish meanwhile, so nothing may be dropped on the primary until this has resolved. It answers queries.
 */
export async function startStandby(primary: PostgresServer, options: StandbyOptions = {}): Promise<StandbyServer> {
  const { via = primary.port, settings = {} } = options
  const source = `host=127.0.0.1 port=${via} user=postgres`
  const server = await startCluster(
    { major: primary.major, settings: { primary_conninfo: source, ...settings } },
    async (cluster, { user }) => {
      const label = await backup(primary, () => copyCluster(clusterIn(primary.folder), cluster))
      await writeFile(join(cluster, 'backup_label'), label)
      await writeFile(join(cluster, 'standby.signal'), '')
      if (user !== undefined) giveTo(cluster, user)
    },
  )
  return Object.assign(server, {
    promote: () =>
      withClient(server.url(), async (client) => {
        const { rows } = await client.query<{ done: boolean }>('SELECT pg_promote(true, 60) AS done')
        if (rows[0]?.done !== true) throw new Error(`The standby was not promoted. Its last lines:\n${server.log()}`)
      }),
  })
}

/** Runs `copy` between start and stop of a backup, both in one session, and returns what goes into `backup_label`. */
async function backup(primary: PostgresServer, copy: () => Promise<void>): Promise<string> {
  const old = primary.major < 15
  return withClient(primary.url(), async (client: pg.Client) => {
    await client.query(
      old ? "SELECT pg_start_backup('standby', true, false)" : "SELECT pg_backup_start('standby', true)",
    )
    await copy()
    const { rows } = await client.query<{ labelfile: string }>(
      old ? 'SELECT labelfile FROM pg_stop_backup(false, false)' : 'SELECT labelfile FROM pg_backup_stop(false)',
    )
    const [row] = rows
    if (row === undefined) throw new Error('The backup ended without a label.')
    return row.labelfile
  })
}

/** By `cp`, which is a hundred times faster than the copy of node. Left out: the WAL, which is streamed. */
async function copyCluster(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-R', from, to])
  const leftOut = ['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot', 'pg_stat_tmp']
  await Promise.all(leftOut.map((name) => rm(join(to, name), { recursive: true, force: true })))
  const emptied = ['pg_wal/archive_status', 'pg_replslot', 'pg_stat_tmp']
  await Promise.all(emptied.map((name) => mkdir(join(to, name), { recursive: true })))
}

function giveTo(path: string, user: ServerUser): void {
  chownSync(path, user.uid, user.gid)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const inside = join(path, entry.name)
    if (entry.isDirectory()) giveTo(inside, user)
    else chownSync(inside, user.uid, user.gid)
  }
}
