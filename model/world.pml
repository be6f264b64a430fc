/*
 * What happens to the table beside the relays: writers, due, operators, locks, and a standby that takes over.
 */
byte transactions;        /* of writers, so far */
byte early;               /* set: transaction ids of writers that have not inserted yet */

#define NOTHING 0
#define REQUEUE 1
#define DISCARD 2
#define STAMP_NEXT 3      /* a row was taken away; the first one behind it has to be stamped */
#define STAMP 4
byte operating;
byte operand;
byte stamped;             /* event + 1 */
byte operatorXid;

/* The insert of the next event runs. Its causes are what is committed by now. */
inline takeId(as) {
  state[nextEvent] = as;
#if FAILOVERS
  id[nextEvent] = nextId;
#endif
  nextId++;
  n = 0;
  do
  :: n == nextEvent -> break
  :: else ->
    if
    :: isCommitted(n) -> before[nextEvent] = before[nextEvent] | bit(n)
    :: else
    fi;
    n++
  od;
  nextEvent++
}

inline insertEarly(x) {
  takeId(INSERTED);
  xid[nextEvent - 1] = x;
  early = early & ~bit(x);
  printf("@ Transaction %d inserts event %c with id %d.\n", x, 64 + nextEvent, nextId - 1)
}

/*
 * A transaction takes its id when it first writes: long before its insert, or within it, before or after the row takes
 * an id. PLAIN_WRITERS: both at once, and none rolls back.
 */
proctype writers() {
end:
  do
#ifdef PLAIN_WRITERS
  :: d_step { transactions < EVENTS ->
      transactions++;
      takeId(INSERTED);
      takeXid(xid[nextEvent - 1]);
      printf("@ Transaction %d inserts event %c with id %d.\n", nextXid - 1, 64 + nextEvent, nextId - 1)
    }
#else
  :: d_step { transactions < EVENTS ->
      transactions++;
      printf("@ Transaction %d begins.\n", nextXid);
      early = early | bit(nextXid);
      takeXid(n)
    }
  :: d_step { has(early, 1) -> insertEarly(1) }
  :: d_step { has(early, 2) -> insertEarly(2) }
  :: d_step { has(early, 3) -> insertEarly(3) }
  :: d_step { has(early, 4) -> insertEarly(4) }
  :: d_step { has(early, 5) -> insertEarly(5) }
  :: d_step { has(early, 6) -> insertEarly(6) }
  :: d_step { has(early, 7) -> insertEarly(7) }
  :: d_step { transactions < EVENTS ->
      transactions++;
      takeId(NUMBERED);
      printf("@ The insert of event %c takes id %d; its transaction has no id yet.\n", 64 + nextEvent, nextId - 1)
    }
#endif
  od
}

/* The first row in line behind the one that was taken away. Into `stamped`. */
inline firstBehind(taken) {
  stamped = 0;
  n = EVENTS;
  do
  :: n == taken + 1 -> break
  :: else ->
    n--;
    if
    :: isInLine(n) -> stamped = n + 1
    :: else
    fi
  od
}

inline operatorCommits() {
  endXid(operatorXid);
  operating = NOTHING;
  operand = 0;
  stamped = 0;
  operatorXid = 0;
  locked = 0
}

/* What may happen to one event. */
proctype row(byte i) {
end:
  do
#ifndef PLAIN_WRITERS
  :: d_step { state[i] == NUMBERED ->
      state[i] = INSERTED;
      takeXid(xid[i]);
      printf("@ The transaction of event %c takes id %d.\n", 65 + i, xid[i])
    }
  :: d_step { state[i] == INSERTED ->
      state[i] = GONE;
      endXid(xid[i]);
      printf("@ Event %c is rolled back.\n", 65 + i)
    }
#endif
  :: d_step { state[i] == INSERTED ->
      state[i] = IN_LINE;
      endXid(xid[i]);
      printf("@ Event %c is committed.\n", 65 + i)
    }
#if REJECTIONS
  :: d_step { state[i] == WAITING && !has(locked, i) ->
      state[i] = IN_LINE;
#ifndef DUE_UNSTAMPED
      takeXid(xid[i]);
      endXid(xid[i]);
#endif
      printf("@ Due puts event %c in line again.\n", 65 + i)
    }
#endif
#if LOCKS
  :: d_step { isInLine(i) && locks > 0 && !has(locked, i) ->
      locks--;
      locked = locked | bit(i);
      printf("@ Somebody locks the row of event %c.\n", 65 + i)
    }
  :: d_step { has(locked, i) && operating == NOTHING ->
      locked = locked & ~bit(i);
      printf("@ The row of event %c is unlocked.\n", 65 + i)
    }
#endif
#if REQUEUES
  :: d_step { (state[i] == FAILED || state[i] == HELD || state[i] == PUBLISHED) && requeues > 0 && operating == NOTHING ->
      requeues--;
      operating = REQUEUE;
      operand = i;
      locked = locked | bit(i);
      takeXid(operatorXid);
      printf("@ An operator puts event %c back in line, in transaction %d.\n", 65 + i, operatorXid)
    }
#endif
#if DISCARDS
#ifdef STAMPED_IN_SAME_TRANSACTION
  :: d_step { isInLine(i) && !has(locked, i) && discards > 0 && operating == NOTHING ->
      discards--;
      operating = DISCARD;
      operand = i;
      takeXid(operatorXid);
      firstBehind(i);
      locked = bit(i);
      printf("@ An operator takes event %c away", 65 + i);
      if
      :: stamped -> locked = locked | bit(stamped - 1); printf(" and stamps event %c", 64 + stamped)
      :: else -> printf(" and sees no row behind it to stamp")
      fi;
      printf(", in transaction %d.\n", operatorXid)
    }
#else
  :: d_step { isInLine(i) && !has(locked, i) && discards > 0 && operating == NOTHING ->
      discards--;
      state[i] = GONE;
      excused = excused | bit(i);
#ifdef GONE_TAKEN_FOR_LOCKED
      goneRows = goneRows | bit(i);
#endif
#ifndef REMOVAL_UNSTAMPED
      operating = STAMP_NEXT;
      operand = i;
#endif
      printf("@ An operator takes event %c away.\n", 65 + i)
    }
#endif
#endif
  od
}

#if REQUEUES || DISCARDS
proctype operator() {
end:
  do
#if REQUEUES
  :: d_step { operating == REQUEUE ->
      state[operand] = IN_LINE;
      attempts[operand] = 0;
      answered[operand] = 0;
      requeued = requeued | bit(operand);
      deliveredNow = deliveredNow & ~bit(operand);
#ifndef REQUEUE_UNSTAMPED
      xid[operand] = operatorXid;
#endif
      operatorCommits();
      printf("@ The operator commits.\n")
    }
#endif
#if DISCARDS
  :: d_step { operating == STAMP_NEXT ->
      firstBehind(operand);
      if
      :: stamped ->
        operating = STAMP;
        locked = locked | bit(stamped - 1);
        takeXid(operatorXid);
        printf("@ The operator stamps event %c, the first behind it, in transaction %d.\n", 64 + stamped, operatorXid)
      :: else ->
        operating = NOTHING;
        operand = 0;
        printf("@ The operator finds no row behind it to stamp.\n")
      fi
    }
  :: d_step { operating == STAMP ->
      xid[stamped - 1] = operatorXid;
      operatorCommits();
      printf("@ The operator commits.\n")
    }
#ifdef STAMPED_IN_SAME_TRANSACTION
  :: d_step { operating == DISCARD ->
      state[operand] = GONE;
      excused = excused | bit(operand);
      if
      :: stamped -> xid[stamped - 1] = operatorXid
      :: else
      fi;
      operatorCommits();
      printf("@ The operator commits.\n")
    }
#endif
#endif
  od
}
#endif

#if FAILOVERS
/* What the standby has. */
byte keptState[EVENTS];
byte keptXid[EVENTS];
byte keptAttempts[EVENTS];
byte keptRequeued, keptNextXid, keptNextId, keptOwner, keptEpoch;

/* At some time the standby receives nothing more, and later it takes over: what was committed in between is lost. */
proctype failover() {
  d_step {
    n = 0;
    do
    :: n == EVENTS -> break
    :: else ->
      keptState[n] = state[n];
      keptXid[n] = xid[n];
      keptAttempts[n] = attempts[n];
      n++
    od;
    keptRequeued = requeued;
    keptNextXid = nextXid;
    keptNextId = nextId;
    keptOwner = owner;
    keptEpoch = epoch;
    printf("@ The standby receives nothing from here on.\n")
  };
  d_step {
    n = 0;
    do
    :: n == EVENTS -> break
    :: else ->
      if
      :: state[n] == NONE
      :: state[n] != NONE && keptState[n] < IN_LINE -> state[n] = GONE
      :: else ->
        state[n] = keptState[n];
        xid[n] = keptXid[n];
        attempts[n] = keptAttempts[n]
      fi;
      keptState[n] = 0;
      keptXid[n] = 0;
      keptAttempts[n] = 0;
      n++
    od;
    early = 0;
    inProgress = 0;
    locked = 0;
    requeued = keptRequeued;
    nextXid = keptNextXid;
    xmax = nextXid;
    nextId = keptNextId;
    owner = keptOwner;
    epoch = keptEpoch;
    keptRequeued = 0;
    keptNextXid = 0;
    keptNextId = 0;
    keptOwner = 0;
    keptEpoch = 0;
    cut[0] = 1;
    severed[0] = settling[0];
    knownSettled[0] = 0;
#if RELAYS > 1
    cut[1] = 1;
    severed[1] = settling[1];
    knownSettled[1] = 0;
#endif
    printf("@ The standby takes over; the next id is %d, the next transaction %d.\n", nextId, nextXid)
  }
}
#endif
