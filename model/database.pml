/*
 * The table, its transactions and what statements read. One d_step is one statement: it sees one snapshot.
 */

/* What an event is. From IN_LINE to FAILED it is committed. */
#define NONE      0   /* not there yet */
#define NUMBERED  1   /* its insert has an id, but no transaction id yet */
#define INSERTED  2   /* not committed */
#define IN_LINE   3   /* pending */
#define WAITING   4   /* pending, and waits for its retry */
#define HELD      5
#define PUBLISHED 6
#define FAILED    7
#define GONE      8   /* rolled back, lost with a server, or taken away by an operator */

#define bit(number) (1 << (number))
#define has(set, number) (((set) >> (number)) & 1)
#define isPending(event) (state[event] == IN_LINE || state[event] == WAITING)
#define isInLine(event) (state[event] >= IN_LINE && state[event] <= HELD)
#define isCommitted(event) (state[event] >= IN_LINE && state[event] <= FAILED)

/* Events are numbered in the order of their inserts, and their ids are too: only a failover brings ids back. */
#if FAILOVERS
byte id[EVENTS];
#define idOf(event) id[event]
#else
#define idOf(event) ((event) + 1)
#endif
byte state[EVENTS];
byte xid[EVENTS];
byte attempts[EVENTS];
byte requeued;            /* set of events that an operator put back in line */
byte nextEvent;
byte nextId = 1;
byte locked;              /* set of rows that somebody else holds locked */
#ifdef GONE_TAKEN_FOR_LOCKED
byte goneRows;            /* set of rows that were deleted, which then look like locked ones */
#endif

/*
 * Transaction ids. A snapshot is xmax, one more than the latest that has ended, and the list of those below that are
 * still in progress.
 */
byte nextXid = 1;
byte xmax = 1;
byte inProgress;          /* set */
#define inProgressList (inProgress & (bit(xmax) - 1))

/* Who owns the slot of the lane. */
byte owner;
byte epoch = 1;

/* Scratch of one step, no part of the state. A breadth-first search cannot have such variables. */
#ifdef SHORTEST
byte e, n, rows, arrivals, smallest;
#else
hidden byte e, n, rows, arrivals, smallest;
#endif

inline takeXid(x) {
  x = nextXid;
  inProgress = inProgress | bit(nextXid);
  nextXid++;
  assert(nextXid < 9)
}

inline endXid(x) {
  inProgress = inProgress & ~bit(x);
  if
  :: x >= xmax -> xmax = x + 1
  :: else
  fi
}

/* The run of the lane from an id on: in id order, ending before the first row that is held or waits. Into `rows`. */
inline readRun(start) {
  rows = 0;
  n = 0;
  e = 0;
  do
  :: e == EVENTS || n == RUN -> break
  :: else ->
    if
    :: isInLine(e) && idOf(e) >= start ->
      if
      :: state[e] == IN_LINE -> rows = rows | bit(e); n++
#ifdef PASS_OVER_BLOCKED
      :: else
#else
      :: else -> break
#endif
      fi
    :: else
    fi;
    e++
  od
}

/* The pending rows that became visible since a snapshot. Into `arrivals`. */
inline readArrivals(previousXmax, previousList) {
  arrivals = 0;
  e = 0;
  do
  :: e == EVENTS -> break
  :: else ->
    if
#ifdef XMAX_EXCLUDED
    :: isPending(e) && xid[e] > previousXmax -> arrivals = arrivals | bit(e)
#else
    :: isPending(e) && xid[e] >= previousXmax -> arrivals = arrivals | bit(e)
#endif
#ifndef LIST_IGNORED
    :: isPending(e) && has(previousList, xid[e]) -> arrivals = arrivals | bit(e)
#endif
    :: else
    fi;
    e++
  od
}

#define NO_ID 15

inline smallestId(set, result) {
  result = NO_ID;
  e = EVENTS;
  do
  :: e == 0 -> break
  :: else ->
    e--;
    if
    :: has(set, e) -> result = idOf(e)
    :: else
    fi
  od
}

/* Into `rows`. */
inline readInLine() {
  rows = 0;
  e = 0;
  do
  :: e == EVENTS -> break
  :: else ->
    if
    :: isInLine(e) -> rows = rows | bit(e)
    :: else
    fi;
    e++
  od
}
