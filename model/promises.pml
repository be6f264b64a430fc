/*
 * What was delivered, and the promises about it.
 */
byte delivered;           /* set of events: at least once */
byte deliveredNow;        /* set: since an operator last put them in line */
byte excused;             /* set: once failed or taken away, so that nothing waits for them any more */
byte before[EVENTS];      /* sets: what was committed before the insert of this event ran */
byte answered[EVENTS];    /* rejections by the broker */

/* P3: first deliveries are in causal order. */
inline deliver(event, asRequeued_) {
  if
  :: !has(delivered, event) -> assert((before[event] & ~(delivered | excused)) == 0)
  :: else
  fi;
  delivered = delivered | bit(event);
  if
  :: asRequeued_ == has(requeued, event) -> deliveredNow = deliveredNow | bit(event)
  :: else
  fi
}

/* P2, first half: a row becomes published only if its event was delivered since it was last put in line. */
inline markPublished(event) {
  assert(has(deliveredNow, event));
  state[event] = PUBLISHED
}

/* An attempt is an answer of the broker: no failure counts twice. */
inline countAttempt(event) {
  attempts[event]++;
  assert(attempts[event] <= answered[event]);
  state[event] = (attempts[event] >= ATTEMPTS -> ENDS : WAITING);
  if
  :: state[event] == FAILED -> excused = excused | bit(event)
  :: else
  fi
}

/*
 * P2, second half: when nothing can happen any more, every committed event is published, failed or held, or it stands
 * behind a held one, and no lane is in flight. Since every execution ends (model.ts checks that there is no cycle), no
 * event and no lane waits for ever.
 */
proctype judge() {
  d_step {
    timeout ->
    n = 0;
    e = 0;
    do
    :: e == EVENTS -> break
    :: else ->
      if
      :: state[e] == HELD -> n = 1
      :: else -> assert(state[e] != NUMBERED && state[e] != INSERTED && state[e] != WAITING && (state[e] != IN_LINE || n))
      fi;
      e++
    od;
    assert(lane[0] == NOT_IN_FLIGHT);
#if RELAYS > 1
    assert(lane[1] == NOT_IN_FLIGHT);
#endif
  }
}
