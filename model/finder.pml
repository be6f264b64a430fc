/*
 * Find and sweep: what the database answers, and what the relay makes of it. Every #ifdef takes a rule away.
 */

/* The rows of `rows` as they are now go into the answer. */
inline answerWithRows(r) {
  answerRows[r] = rows;
  answerRequeued[r] = rows & requeued;
  e = 0;
  do
  :: e == EVENTS -> break
  :: else ->
    if
    :: has(rows, e) && (attempts[e] & 1) -> answerAttempted[r] = answerAttempted[r] | bit(e)
    :: else
    fi;
    e++
  od
}

/*
 * Find, naming the lane or not. At its limit (`hit`) some arrivals are beyond it: rows of other lanes took their place.
 */
inline find(r, named, beyond, hit) {
  asked[r] = FINDING;
  answerXmax[r] = xmax;
  answerList[r] = inProgressList;
  answerNamed[r] = named;
  answerHit[r] = hit;
  answerFresh[r] = fresh[r];
  fresh[r] = 0;
  readArrivals(knownXmax[r], knownList[r]);
  arrivals = arrivals & ~(beyond);
  smallestId(arrivals, answerFirst[r]);
  if
  :: named ->
    smallest = next[r];
    if
#ifndef MET_IDS_IGNORED
    :: low[r] < smallest -> smallest = low[r]
#endif
    :: else
    fi;
    if
#ifndef OWN_ARRIVALS_IGNORED
    :: answerFirst[r] < smallest -> smallest = answerFirst[r]
#endif
    :: else
    fi;
    if
#ifndef HIT_READS_FROM_LOW
    :: hit -> smallest = 0
#endif
    :: else
    fi;
    readRun(smallest)
  :: !named && answerFirst[r] != NO_ID && !(lane[r] == RUNNING && met[r]) ->
#ifdef READ_FROM_ARRIVAL
    readRun(answerFirst[r])
#else
    readRun(0)
#endif
  :: else -> rows = 0
  fi;
  answerWithRows(r);
  printf("@ Relay %d: find", r + 1);
  if
  :: hit -> printf(" reaches its limit and")
  :: else
  fi;
  printf(" sees the arrivals ");
  say(arrivals);
  if
  :: named -> printf(", reads the lane on from id %d", smallest)
  :: else
  fi;
  printf(" and returns the run ");
  say(rows);
  printf(".\n")
}

inline sweep(r) {
  asked[r] = SWEEPING;
  mark[r] = 2;
  readInLine();
  smallestId(rows, answerFirst[r]);
  readRun(0);
  answerWithRows(r);
  printf("@ Relay %d: sweep returns the run ", r + 1);
  say(answerRows[r]);
  printf(".\n")
}

/* The lane is in flight: its rows are ignored, except for the smallest id. */
inline meet(r) {
  met[r] = 1;
  if
  :: answerFirst[r] < low[r] -> low[r] = answerFirst[r]
  :: else
  fi;
  printf("@ Relay %d: takes the answer; the lane is in flight, so its rows are ignored.\n", r + 1)
}

inline startRun(r) {
  lane[r] = RUNNING;
  laneEpoch[r] = knownEpoch[r];
  todo[r] = answerRows[r];
  asAttempted[r] = answerAttempted[r];
  asRequeued[r] = answerRequeued[r];
  low[r] = NO_ID;
  printf("@ Relay %d: takes the answer and begins with the run ", r + 1);
  say(todo[r]);
  printf(".\n")
}

inline noticeRows(r) {
  offered = (lane[r] == NOT_IN_FLIGHT && answerRows[r] && owns[r] && leaseHolds(r) -> 1 + answerNamed[r] : 0);
  if
  :: offered
  :: !offered && lane[r] != NOT_IN_FLIGHT && answerFirst[r] != NO_ID -> meet(r)
  :: else -> printf("@ Relay %d: takes the answer; there is nothing to begin.\n", r + 1)
  fi
}

/* One turn of the event loop: only this answer may go on with the lane it was asked for, or frees it. */
inline takeFound(r) {
  d_step {
    knownXmax[r] = answerXmax[r];
    knownList[r] = answerList[r];
    if
    :: answerFresh[r] -> markForSweep(r)
    :: else
    fi;
    if
    :: answerHit[r] ->
#ifndef HIT_KEEPS_LOWS
#ifdef WAITING_LANE_KEEPS_LOW
      if
      :: !answerNamed[r] -> low[r] = 0
      :: else
      fi;
#else
      low[r] = 0;
#endif
#endif
#ifndef HIT_WITHOUT_SWEEP
      markForSweep(r);
#endif
      skip
    :: else
    fi;
    if
    :: answerNamed[r] -> nextBefore = next[r]; lowBefore = low[r]; forgetLane(r)
#ifdef FREED_BY_OLDER_FIND
    :: !answerNamed[r] && lane[r] == SETTLED -> forgetLane(r)
#endif
    :: else
    fi;
    if
    :: sweepAll[r] -> sweepAll[r] = 0; markForSweep(r)
    :: else
    fi;
    noticeRows(r)
  };
  if
  :: !offered
  :: d_step { offered -> startRun(r) }
#if DROPS
  :: d_step { offered == 1 && drops > 0 ->
      drops--;
#ifndef DROPPED_UNMARKED
      mark[r] = 1;
#endif
      printf("@ Relay %d: takes the answer; there is no room for the lane.\n", r + 1)
    }
  :: d_step { offered == 2 && drops > 0 ->
      drops--;
      lane[r] = SETTLED;
      laneEpoch[r] = knownEpoch[r];
      next[r] = nextBefore;
      low[r] = (answerFirst[r] == NO_ID -> lowBefore : 0);
      printf("@ Relay %d: takes the answer; there is no room, so the lane waits in flight.\n", r + 1)
    }
  :: d_step { offered && drops > 0 ->
      drops--;
      parked[r] = 1;
      printf("@ Relay %d: takes the answer; the destination takes nothing, so the lane is passed over.\n", r + 1)
    }
#endif
  fi;
  d_step {
    forgetAnswer(r);
    offered = 0;
    nextBefore = 0;
    lowBefore = 0
  }
}

inline takeSwept(r) {
  d_step {
    if
    :: mark[r] == 2 -> mark[r] = 0
    :: else
    fi;
    noticeRows(r)
  };
  if
  :: !offered
  :: d_step { offered -> startRun(r) }
#if DROPS
  :: d_step { offered && drops > 0 ->
      drops--;
#ifndef DROPPED_UNMARKED
      mark[r] = 1;
#endif
      printf("@ Relay %d: takes the answer; there is no room for the lane.\n", r + 1)
    }
#endif
  fi;
  d_step {
    forgetAnswer(r);
    offered = 0
  }
}

/* A bounded scope (ANSWERS_AT_ONCE) leaves out what can happen while an answer is on its way. */
inline findAndTake(r, named, beyond, hit) {
  d_step { find(r, named, beyond, hit) };
#ifdef ANSWERS_AT_ONCE
  takeFound(r)
#else
  skip
#endif
}
