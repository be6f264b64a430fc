import { test } from 'vitest'
import { holds, patience, promise } from './play.ts'

test.each(['kill-relays', 'pause-relays', 'churn', 'clock-skew', 'crash-event', 'rolling-upgrade'])(
  promise,
  { timeout: patience },
  holds,
)
