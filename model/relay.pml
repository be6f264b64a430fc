/*
 * One relay. It does one find or sweep at a time; its run and its settle go on beside them.
 */

inline claim(r) {
  if
  :: takeovers > 0 -> takeovers--
  :: else
  fi;
  owner = r;
  epoch++;
  printf("@ Relay %d: takes the slot over, epoch %d.\n", r + 1, epoch);
  gain(r)
}

inline gain(r) {
  owns[r] = 1;
  knownEpoch[r] = epoch;
#ifdef GAINED_SWEPT_AT_ONCE
  mark[r] = 1;
#else
#ifndef GAINED_UNSWEPT
  fresh[r] = 1;
#endif
#endif
  skip
}

/* What the relay sees while the slot is not its own only decides how many rows of the lane are arrivals later. */
inline lose(r) {
  owns[r] = 0;
  knownEpoch[r] = 0;
  fresh[r] = 0;
  mark[r] = 0;
  knownXmax[r] = 1;
  knownList[r] = 0;
  printf("@ Relay %d: learns that the slot is not its own any more.\n", r + 1)
}

/* A new snapshot, as at the start: nothing that was remembered holds on another connection or server. */
inline startAfresh(r) {
  cut[r] = 0;
#ifndef SNAPSHOT_KEPT
  knownXmax[r] = xmax;
  knownList[r] = inProgressList;
#ifndef RECONNECTED_UNSWEPT
  sweepAll[r] = 1;
#endif
#endif
#ifndef RECONNECT_KEEPS_LOWS
  low[r] = 0;
#endif
  printf("@ Relay %d: connects again.\n", r + 1)
}

proctype relay(byte r) {
  /* Within one atomic only. An answer brings a run: 1 of a lane that was not named, 2 of one that was. */
  byte offered, nextBefore, lowBefore;

  d_step {
    knownXmax[r] = 1;
    if
    :: r == 0 -> owns[r] = 1; knownEpoch[r] = 1
    :: else
    fi
  };
end:
  do
  /* The slot. A relay that does not know yet that it has lost it goes on: order must not depend on exclusivity. */
#if RELAYS > 1
  :: d_step { owner != r && (takeovers > 0 || has(dead, owner)) && canAsk(r) ->
      /* It has looked just before. */
      knownXmax[r] = xmax;
      knownList[r] = inProgressList;
      claim(r)
    }
  :: d_step { owner != r && (takeovers > 0 || has(dead, owner)) && knownXmax[r] != xmax -> claim(r) }
  :: d_step { crashes > 0 ->
      crashes--;
      dead = dead | bit(r);
      forgetAll(r);
      printf("@ Relay %d: dies.\n", r + 1)
    };
    break
#endif
#if RELAYS > 1 || FAILOVERS
  :: d_step { owner == r && (!owns[r] || knownEpoch[r] != epoch) ->
      gain(r);
      printf("@ Relay %d: learns that it owns the slot, epoch %d.\n", r + 1, epoch)
    }
  :: d_step { owner != r && owns[r] -> lose(r) }
  :: d_step { canAsk(r) && lane[r] == SETTLED && !mayPublish(r) ->
      forgetLane(r);
#ifndef REGAINED_UNMARKED
      markForSweep(r);
#endif
      printf("@ Relay %d: drops the lane, because its slot had moved.\n", r + 1)
    }
#endif

  /* The connection. */
#if CUTS
  :: d_step { cuts > 0 && !cut[r] ->
      cuts--;
      cut[r] = 1;
      printf("@ Relay %d: its connection breaks.\n", r + 1)
    }
#endif
#if CUTS || FAILOVERS
  :: d_step { cut[r] && asked[r] ->
      forgetAnswer(r);
      printf("@ Relay %d: the answer is lost.\n", r + 1)
    }
  :: d_step { cut[r] && !asked[r] -> startAfresh(r) }
#endif

  /* Find. A lane at rest is named when its pause is over. */
  :: atomic { canAsk(r) && lane[r] == SETTLED && mayPublish(r) -> findAndTake(r, 1, 0, 0) }
  :: atomic { canAsk(r) && owns[r] && (lane[r] != SETTLED || mayPublish(r)) && (somethingNew(r) || fresh[r] || sweepAll[r]) ->
      findAndTake(r, 0, 0, 0)
    }
#if HITS
  :: atomic { hits > 0 && canAsk(r) && lane[r] == SETTLED && mayPublish(r) && somethingNew(r) -> hits--; findAndTake(r, 1, 1, 1) }
  :: atomic { hits > 0 && canAsk(r) && lane[r] == SETTLED && mayPublish(r) && somethingNew(r) -> hits--; findAndTake(r, 1, 2, 1) }
  :: atomic { hits > 0 && canAsk(r) && lane[r] == SETTLED && mayPublish(r) && somethingNew(r) -> hits--; findAndTake(r, 1, 4, 1) }
  :: atomic { hits > 0 && canAsk(r) && lane[r] == SETTLED && mayPublish(r) && somethingNew(r) -> hits--; findAndTake(r, 1, 7, 1) }
  :: atomic { hits > 0 && canAsk(r) && owns[r] && lane[r] != SETTLED && somethingNew(r) -> hits--; findAndTake(r, 0, 1, 1) }
  :: atomic { hits > 0 && canAsk(r) && owns[r] && lane[r] != SETTLED && somethingNew(r) -> hits--; findAndTake(r, 0, 2, 1) }
  :: atomic { hits > 0 && canAsk(r) && owns[r] && lane[r] != SETTLED && somethingNew(r) -> hits--; findAndTake(r, 0, 4, 1) }
  :: atomic { hits > 0 && canAsk(r) && owns[r] && lane[r] != SETTLED && somethingNew(r) -> hits--; findAndTake(r, 0, 7, 1) }
#endif
  :: atomic { asked[r] == FINDING -> takeFound(r) }

  /* Sweep. */
  :: d_step { canAsk(r) && owns[r] && mark[r] -> sweep(r) }
  :: atomic { asked[r] == SWEEPING -> takeSwept(r) }
#if DROPS
  :: d_step { parked[r] ->
      parked[r] = 0;
#ifndef DROPPED_UNMARKED
      markForSweep(r);
#endif
      printf("@ Relay %d: the destination answers again.\n", r + 1)
    }
#endif

  /* The run. */
  :: d_step { lane[r] == RUNNING && todo[r] && !mayPublish(r) ->
      lowest(todo[r]);
      printf("@ Relay %d: ends its run, because the slot is not its own any more.\n", r + 1);
      endRunAt(r, e)
    }
  :: d_step { lane[r] == RUNNING && todo[r] && mayPublish(r) ->
      lowest(todo[r]);
      printf("@ Relay %d: publishes %c, and the broker acknowledges it.\n", r + 1, 65 + e);
      checkRepeat(r, e);
      deliver(e, has(asRequeued[r], e));
      acknowledge(r, e)
    }
#if REJECTIONS
  :: d_step { lane[r] == RUNNING && todo[r] && mayPublish(r) && rejections > 0 && !failing[r] ->
      lowest(todo[r]);
      printf("@ Relay %d: publishes %c, and the broker rejects it.\n", r + 1, 65 + e);
      reject(r, e)
    }
#endif
#if UNANSWERED
  :: d_step { lane[r] == RUNNING && todo[r] && mayPublish(r) && unanswered > 0 ->
      unanswered--;
      lowest(todo[r]);
      printf("@ Relay %d: publishes %c; it is delivered, but no answer comes.\n", r + 1, 65 + e);
      deliver(e, has(asRequeued[r], e));
      endRunAt(r, e)
    }
  :: d_step { lane[r] == RUNNING && todo[r] && mayPublish(r) && unanswered > 0 ->
      unanswered--;
      lowest(todo[r]);
      printf("@ Relay %d: publishes %c; it is not delivered.\n", r + 1, 65 + e);
      endRunAt(r, e)
    }
#endif

  /* Settle. */
#ifdef ANSWERS_AT_ONCE
  :: d_step { lane[r] == RUNNING && !settling[r] && canSettle(r) -> settle(r); takeSettled(r) }
#else
  :: d_step { lane[r] == RUNNING && !settling[r] && canSettle(r) -> settle(r) }
  :: d_step { settling[r] -> takeSettled(r) }
#endif
#if LOST_SETTLES
  :: d_step { settling[r] && lostSettles > 0 ->
      lostSettles--;
      settling[r] = 0;
      batchOwned[r] = 0;
      printf("@ Relay %d: the answer of the settle is lost.\n", r + 1)
    }
#ifdef LOST_TAKEN_FOR_SETTLED
  :: d_step { lane[r] == RUNNING && !settling[r] && canSettle(r) && lostSettles > 0 ->
      lostSettles--;
      takeBatch(r);
      batchOwned[r] = 1;
      printf("@ Relay %d: the settle is lost before it is executed, and forgotten.\n", r + 1);
      takeSettled(r)
    }
#endif
#endif
#if FAILOVERS
  :: d_step { severed[r] ->
      severed[r] = 0;
      settling[r] = 0;
      batchOwned[r] = 0;
      printf("@ Relay %d: the answer of the settle is lost.\n", r + 1)
    }
#endif
  od
}
