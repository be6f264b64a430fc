// A thread does not inherit the loader that reads TypeScript on Node 20, so it registers one of its own.
import { register } from 'tsx/esm/api'

register()
await import('./relay-thread.ts')
