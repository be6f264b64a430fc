// Loaded before everything else, as skew-clock.mjs?ms=600000, in a process whose wall clock is to be wrong by so much.
// Timers and the monotonic clock go on as they are, as on a machine whose clock was set wrong.
const skewMs = Number(new URL(import.meta.url).searchParams.get('ms'))
const RightDate = Date

globalThis.Date = class Date extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + skewMs)
    else super(...given)
  }

  static now() {
    return RightDate.now() + skewMs
  }
}
