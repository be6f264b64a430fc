/*
 * Publishing a run, and settling what came of it.
 */

inline lowest(set) {
  e = 0;
  do
  :: has(set, e) -> break
  :: else -> e++
  od
}

/* The run has ended and all of it is settled: the lane comes to rest, or leaves when its slot moved. */
inline restWhenSettled(r) {
  if
  :: lane[r] == RUNNING && !todo[r] && !unsettled(r) && !moved[r] ->
#ifdef FREED_AT_SETTLE
    forgetLane(r)
#else
    lane[r] = SETTLED;
    asAttempted[r] = 0;
    asRequeued[r] = 0;
    met[r] = 0
#endif
  :: lane[r] == RUNNING && !todo[r] && !unsettled(r) && moved[r] ->
    if
    :: mayPublish(r) -> owns[r] = 0; knownEpoch[r] = 0; fresh[r] = 0
    :: else
    fi;
    forgetLane(r);
#ifndef REGAINED_UNMARKED
    markForSweep(r);
#endif
    printf("@ Relay %d: drops the lane, because its slot had moved.\n", r + 1)
  :: else
  fi
}

/* The run ends at an event that stays as it is. */
inline endRunAt(r, event) {
  next[r] = idOf(event);
  todo[r] = 0;
  restWhenSettled(r)
}

inline acknowledge(r, event) {
  acknowledged[r] = acknowledged[r] | bit(event);
  todo[r] = todo[r] & ~bit(event);
  if
  :: !todo[r] && !failing[r] -> next[r] = idOf(event) + 1
  :: else
  fi
}

inline reject(r, event) {
  rejections--;
  answered[event]++;
  failing[r] = event + 1;
  next[r] = idOf(event);
#ifdef GOES_ON_AFTER_FAILURE
  todo[r] = todo[r] & ~bit(event)
#else
  todo[r] = 0
#endif
}

/* Rows that a settle cannot be done with now. */
#ifdef GONE_TAKEN_FOR_LOCKED
#define unreachable (locked | goneRows)
#else
#define unreachable locked
#endif
#ifdef SKIPPED_TAKEN_FOR_SETTLED
#define inBatch(r) acknowledged[r]
#else
#define inBatch(r) (acknowledged[r] & ~unreachable)
#endif
#define canSettle(r) (batch[r] || batchFailing[r] || inBatch(r) || (failing[r] && !has(unreachable, failing[r] - 1)))

inline takeBatch(r) {
  batch[r] = inBatch(r);
  acknowledged[r] = acknowledged[r] & ~batch[r];
  if
  :: failing[r] && !has(unreachable, failing[r] - 1) -> batchFailing[r] = failing[r]; failing[r] = 0
  :: else
  fi
}

inline settleAcknowledged(r) {
  e = 0;
  do
  :: e == EVENTS -> break
  :: else ->
    if
    :: has(batch[r], e) && !has(locked, e) && isPending(e) &&
#ifndef REQUEUES_UNMATCHED
       has(asRequeued[r], e) == has(requeued, e) &&
#endif
#ifndef ACKNOWLEDGED_WHATEVER_ATTEMPTS
       has(asAttempted[r], e) == (attempts[e] & 1) &&
#endif
       true -> markPublished(e)
    :: else
    fi;
#ifdef EVENT_ID_UNMATCHED
    n = 0;
    do
    :: n == EVENTS -> break
    :: else ->
      if
      :: n != e && has(batch[r], e) && idOf(n) == idOf(e) && isPending(n) -> markPublished(n)
      :: else
      fi;
      n++
    od;
#endif
    e++
  od
}

inline settleFailure(r, event) {
  if
  :: isPending(event) && !has(locked, event) &&
#ifndef FAILURES_UNFENCED
     batchOwned[r] &&
#endif
#ifndef ATTEMPTS_UNMATCHED
     has(asAttempted[r], event) == (attempts[event] & 1) &&
#endif
     has(asRequeued[r], event) == has(requeued, event) -> countAttempt(event)
  :: else
  fi
}

/* The statement. Sent again unchanged when its answer was lost; rows that are locked go into the next batch. */
inline settle(r) {
  if
  :: !batch[r] && !batchFailing[r] -> takeBatch(r)
  :: else
  fi;
  settling[r] = 1;
  batchOwned[r] = (ownsStill(r) -> 1 : 0);
  printf("@ Relay %d: settle writes that ", r + 1);
  say(batch[r]);
  printf(" is acknowledged");
  if
  :: batchFailing[r] -> printf(" and that %c was rejected", 64 + batchFailing[r])
  :: else
  fi;
  if
  :: !batchOwned[r] -> printf("; the slot is not its own any more")
  :: else
  fi;
  printf(".\n");
  settleAcknowledged(r);
  if
  :: batchFailing[r] -> settleFailure(r, (batchFailing[r] - 1))
  :: else
  fi
}

inline takeSettled(r) {
  printf("@ Relay %d: takes the answer of the settle.\n", r + 1);
  knownSettled[r] = knownSettled[r] | batch[r];
  if
  :: !batchOwned[r] -> moved[r] = 1
  :: else
  fi;
  forgetBatch(r);
  restWhenSettled(r)
}
