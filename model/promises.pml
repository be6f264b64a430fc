/*
 * What was delivered, and the promises about it. What is printed before an assertion ends the trace of its violation.
 */
byte delivered;           /* set of events: at least once */
byte deliveredNow;        /* set: since an operator last put them in line */
byte excused;             /* set: once failed or taken away, so that nothing waits for them any more */
byte before[EVENTS];      /* sets: what was committed before the insert of this event ran */
byte answered[EVENTS];    /* rejections by the broker */

/* P3: first deliveries are in causal order. */
inline deliver(event, readAsRequeued) {
  if
  :: !has(delivered, event) && (before[event] & ~(delivered | excused)) ->
    printf("@ P3: ");
    say(before[event] & ~(delivered | excused));
    printf(" was committed before %c was inserted, and is delivered after it.\n", 65 + event);
    assert(false)
  :: else
  fi;
  delivered = delivered | bit(event);
  if
  :: readAsRequeued == has(requeued, event) -> deliveredNow = deliveredNow | bit(event)
  :: else
  fi
}

/* P2, first half: a row becomes published only if its event was delivered since it was last put in line. */
inline markPublished(event) {
  if
  :: !has(deliveredNow, event) ->
    printf("@ P2: event %c becomes published, and was not delivered since it was put in line.\n", 65 + event);
    assert(false)
  :: else
  fi;
  state[event] = PUBLISHED
}

/* An attempt is an answer of the broker: none counts twice. */
inline countAttempt(event) {
  attempts[event]++;
  if
  :: attempts[event] > answered[event] ->
    printf("@ Attempts: event %c counts %d of them after %d answers.\n", 65 + event, attempts[event], answered[event]);
    assert(false)
  :: else
  fi;
  state[event] = (attempts[event] >= ATTEMPTS -> ENDS : WAITING);
  if
  :: state[event] == FAILED -> excused = excused | bit(event)
  :: else
  fi
}

/* Repeats: a relay publishes nothing again that it knows to be settled. Only where no other relay is about. */
inline checkRepeat(r, event) {
#ifdef CHECK_REPEATS
  if
  :: has(knownSettled[r], event) && !has(asRequeued[r], event) ->
    printf("@ Repeats: event %c is published again, although the relay knows that it is settled.\n", 65 + event);
    assert(false)
  :: else
  fi
#else
  skip
#endif
}

/*
 * P2, second half: when nothing can happen any more, every committed event is published, failed or held, or stands
 * behind a held one, and no lane is in flight. Every execution ends (spin finds no cycle), so nothing waits for ever.
 */
#ifndef ORDER_ONLY
proctype judge() {
  timeout;
  d_step {
    n = 0;
    e = 0;
    do
    :: e == EVENTS -> break
    :: else ->
      if
      :: state[e] == HELD -> n = 1
      :: state[e] == NUMBERED || state[e] == INSERTED || state[e] == WAITING || (state[e] == IN_LINE && !n) ->
        printf("@ P2: nothing more happens, and event %c is still in line.\n", 65 + e);
        assert(false)
      :: else
      fi;
      e++
    od;
    if
    :: lane[0] != NOT_IN_FLIGHT -> printf("@ P2: nothing more happens, and the lane is still in flight.\n"); assert(false)
    :: else
    fi;
#if RELAYS > 1
    if
    :: lane[1] != NOT_IN_FLIGHT -> printf("@ P2: nothing more happens, and the lane is still in flight.\n"); assert(false)
    :: else
    fi
#endif
  }
}
#endif
