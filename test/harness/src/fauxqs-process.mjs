// The program that `fauxqs.ts` starts: the port is its only argument.
import { startFauxqs } from 'fauxqs'

await startFauxqs({ port: Number(process.argv[2]), host: '127.0.0.1', logger: false })
