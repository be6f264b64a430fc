// A program that starts servers and never stops them. parent-death.test.ts ends it in every way there is.
import { startPostgres, startRedis } from '../src/index.ts'

const servers = [await startPostgres(), await startRedis()]
if (process.argv[2] === 'freeze') for (const server of servers) server.pause()
console.log(JSON.stringify(servers.map(({ pid, folder }) => ({ pid, folder }))))
// Without this the program is finished here, which is one of the ways.
if (process.argv[2] !== 'finish') setInterval(() => undefined, 60_000)
