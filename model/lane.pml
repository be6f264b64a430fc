/*
 * One lane of an outbox: its writers, its relays, its operator, and what may go wrong. README.md says what this is for.
 */
#include "bounds.pml"
#include "database.pml"
#include "relay-state.pml"
#include "promises.pml"
#include "finder.pml"
#include "settler.pml"
#include "relay.pml"
#include "world.pml"

init {
  atomic {
    run relay(0);
#if RELAYS > 1
    run relay(1);
#endif
    run writers();
    run row(0);
#if EVENTS > 1
    run row(1);
#endif
#if EVENTS > 2
    run row(2);
#endif
#if REQUEUES || DISCARDS
    run operator();
#endif
#if FAILOVERS
    run failover();
#endif
#ifndef ORDER_ONLY
    run judge();
#endif
    skip
  }
}
