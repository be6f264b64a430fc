/*
 * How much happens. A scope (scopes.ts) sets these with -D; what it leaves out does not happen in it.
 */
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef RELAYS
#define RELAYS 1
#endif
/* Rows of the lane in one answer. */
#ifndef RUN
#define RUN 2
#endif
/* After so many rejections an event ends, as FAILED or HELD. */
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef ENDS
#define ENDS FAILED
#endif

/* The rest: how often at most, in all. */
#ifndef REJECTIONS
#define REJECTIONS 0
#endif
#ifndef UNANSWERED
#define UNANSWERED 0
#endif
#ifndef HITS
#define HITS 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef LOST_SETTLES
#define LOST_SETTLES 0
#endif
#ifndef LOCKS
#define LOCKS 0
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef FAILOVERS
#define FAILOVERS 0
#endif
#ifndef REQUEUES
#define REQUEUES 0
#endif
#ifndef DISCARDS
#define DISCARDS 0
#endif

byte rejections = REJECTIONS, unanswered = UNANSWERED, hits = HITS, drops = DROPS, cuts = CUTS;
byte lostSettles = LOST_SETTLES, locks = LOCKS, takeovers = TAKEOVERS, crashes = CRASHES;
byte requeues = REQUEUES, discards = DISCARDS;
