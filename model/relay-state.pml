/*
 * What a relay knows. Arrays of one entry per relay.
 */
#define NOT_IN_FLIGHT 0
#define RUNNING 1
#define SETTLED 2

/* The slot. */
byte owns[RELAYS];
byte knownEpoch[RELAYS];
byte fresh[RELAYS];       /* gained, and no find has carried it yet */
byte mark[RELAYS];        /* to be swept: 1, or 2 while the sweep is on its way */
byte parked[RELAYS];      /* passed over, because the destination took nothing */

/* The snapshot of the last find, and the connection on which it holds. */
byte knownXmax[RELAYS];
byte knownList[RELAYS];
byte cut[RELAYS];         /* broken; an answer that was sent before may still come */
byte sweepAll[RELAYS];    /* to be swept after the next find */

/* The lane. */
byte lane[RELAYS];
byte laneEpoch[RELAYS];
byte todo[RELAYS];        /* set: rows of the run that are still to be published */
byte acknowledged[RELAYS];/* set: rows to be settled */
byte failing[RELAYS];     /* event + 1 whose failure is to be settled */
byte asAttempted[RELAYS]; /* set: rows of the run that were read with an odd number of attempts */
byte asRequeued[RELAYS];  /* set: rows of the run that were read as put back in line */
byte next[RELAYS];        /* first id that the run did not settle */
byte low[RELAYS];         /* smallest id that turned up while in flight; 0 reads the lane from its start */
byte met[RELAYS];         /* a find has met it, so that later ones need not read it */
byte moved[RELAYS];       /* a settle found the slot with somebody else */

/* The find or sweep that is on its way, and what the database answered. */
#define IDLE 0
#define FINDING 1
#define SWEEPING 2
byte asked[RELAYS];
byte answerXmax[RELAYS];
byte answerList[RELAYS];
byte answerRows[RELAYS];  /* set */
byte answerAttempted[RELAYS];
byte answerRequeued[RELAYS];
byte answerFirst[RELAYS]; /* smallest arrived id (find) or id of the first row (sweep) */
byte answerNamed[RELAYS]; /* the find was asked to go on with the lane */
byte answerHit[RELAYS];
byte answerFresh[RELAYS]; /* the find carried the slot for the first time */

/* The settle that is on its way: sent, or to be sent again, as long as there is a batch. */
byte settling[RELAYS];    /* the database has executed it */
byte batch[RELAYS];       /* set: acknowledged rows */
byte batchFailing[RELAYS];
byte batchOwned[RELAYS];
#if FAILOVERS
byte severed[RELAYS];     /* its answer was on its way when the server was lost */
#endif

byte knownSettled[RELAYS];/* set: what this relay knows to be settled by itself */
byte dead;                /* set of relays */

/* By its own clock a relay knows when its lease is over, and nobody takes the slot before. */
#ifdef LEASE_IGNORED
#define leaseHolds(r) true
#else
#define leaseHolds(r) (owner == r)
#endif
#ifdef EPOCH_IGNORED
#define mayPublish(r) (owns[r])
#define ownsStill(r) (owner == r)
#else
#define mayPublish(r) (owns[r] && knownEpoch[r] == laneEpoch[r])
#define ownsStill(r) (owner == r && epoch == laneEpoch[r])
#endif
#define unsettled(r) (acknowledged[r] || failing[r] || batch[r] || batchFailing[r])
#define canAsk(r) (!asked[r] && !cut[r])
#define somethingNew(r) (knownXmax[r] != xmax || knownList[r] != inProgressList)

inline forgetLane(r) {
  lane[r] = NOT_IN_FLIGHT;
  laneEpoch[r] = 0;
  todo[r] = 0;
  acknowledged[r] = 0;
  failing[r] = 0;
  asAttempted[r] = 0;
  asRequeued[r] = 0;
  next[r] = 0;
  low[r] = 0;
  met[r] = 0;
  moved[r] = 0
}

inline forgetAnswer(r) {
  asked[r] = IDLE;
  answerXmax[r] = 0;
  answerList[r] = 0;
  answerRows[r] = 0;
  answerAttempted[r] = 0;
  answerRequeued[r] = 0;
  answerFirst[r] = 0;
  answerNamed[r] = 0;
  answerHit[r] = 0;
  answerFresh[r] = 0
}

inline forgetBatch(r) {
  settling[r] = 0;
  batch[r] = 0;
  batchFailing[r] = 0;
#if FAILOVERS
  severed[r] = 0;
#endif
  batchOwned[r] = 0
}

/* A dead relay remembers nothing. */
inline forgetAll(r) {
  forgetLane(r);
  forgetAnswer(r);
  forgetBatch(r);
  owns[r] = 0;
  knownEpoch[r] = 0;
  fresh[r] = 0;
  mark[r] = 0;
  parked[r] = 0;
  knownXmax[r] = 0;
  knownList[r] = 0;
  cut[r] = 0;
  sweepAll[r] = 0;
  knownSettled[r] = 0
}

inline markForSweep(r) {
  if
  :: owns[r] -> mark[r] = 1
  :: else
  fi
}

/* Lines that begin with @ become the steps of a trace; a set is written as { A B }. */
inline say(set) {
  n = 0;
  printf("{");
  do
  :: n == EVENTS -> break
  :: else ->
    if
    :: has(set, n) -> printf(" %c", 65 + n)
    :: else
    fi;
    n++
  od;
  printf(" }")
}
