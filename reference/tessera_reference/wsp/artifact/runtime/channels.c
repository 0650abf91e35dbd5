/* A channel (section 2.2): tokens from send to take, and who waits at both ends, first come, first served. */
#include "runtime.h"

static void hand_over(Machine *m, Channel *c, u64 value) {
    c->sent++;
    c->taken++;
    wsp_deliver(m, wsp_pop(&c->takers), TOKEN, value);
}

static void append(Machine *m, Channel *c, u64 seen, u64 value) {
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 4;
        Token *tokens = wsp_allocate(m, room, sizeof(Token));
        for (size_t each = 0; each < c->count; each++) tokens[each] = c->tokens[(c->first + each) % c->room];
        wsp_release(c->tokens);
        c->tokens = tokens;
        c->first = 0;
        c->room = room;
    }
    c->tokens[(c->first + c->count++) % c->room] = (Token){seen, value};
}

/* A token is sent; there is room for it. */
static void enter(Machine *m, Channel *c, u64 value) {
    if (c->info->latency > 0) {
        c->sent++;
        append(m, c, m->now + c->info->latency, value);
        wsp_after(m, c->info->latency, TOKEN_SEEN, c->index, c);
    } else if (c->takers.count > 0) {
        hand_over(m, c, value);
    } else {
        c->sent++;
        append(m, c, m->now, value);
    }
}

/* The first token, which is taken, if it is visible. */
static bool visible_token(Machine *m, Channel *c, u64 *value) {
    if (c->count > 0) {
        if (c->tokens[c->first].seen > m->now) return false;
        *value = c->tokens[c->first].value;
        c->first = (c->first + 1) % c->room;
        c->count--;
        c->taken++;
        if (c->senders.count > 0) {
            Entry sender = wsp_pop(&c->senders);
            enter(m, c, sender.value);
            wsp_let_go(m, sender);
        }
        return true;
    }
    if (c->capacity == 0 && c->senders.count > 0 && c->senders.entries[0].time + c->info->latency <= m->now) {
        Entry sender = wsp_pop(&c->senders);
        *value = sender.value;
        c->sent++;
        c->taken++;
        wsp_let_go(m, sender);
        return true;
    }
    return false;
}

/* Whether the send is done; else the party waits, and is let go later. */
bool wsp_channel_send(Machine *m, Channel *c, Party party, u64 value) {
    Entry entry = {m->now, party.number, value, party.subject, party.kind};
    if (c->capacity == 0) {
        if (c->takers.count > 0 && c->info->latency == 0) {
            hand_over(m, c, value);
            return true;
        }
        wsp_push(m, &c->senders, entry);
        if (c->info->latency > 0) wsp_after(m, c->info->latency, TOKEN_SEEN, c->index, c);
        return false;
    }
    if (c->count < c->capacity) {
        enter(m, c, value);
        return true;
    }
    wsp_push(m, &c->senders, entry);
    return false;
}

/* TOKEN, CLOSED, or NOTHING where the party waits, to whom one is delivered later. */
int wsp_channel_take(Machine *m, Channel *c, Party party, u64 *value) {
    if (visible_token(m, c, value)) return TOKEN;
    if (c->seen_closed) return CLOSED;
    wsp_push(m, &c->takers, (Entry){m->now, party.number, 0, party.subject, party.kind});
    return NOTHING;
}

/* One producer fewer; after the last the channel is closed, which is seen after the latency. */
void wsp_producer_closes(Machine *m, Channel *c) {
    c->producers--;
    if (c->producers > 0) return;
    if (c->info->latency > 0)
        wsp_after(m, c->info->latency, CLOSE_SEEN, c->index, c);
    else
        wsp_close_seen(m, c);
}

/* Tokens may have become visible. */
void wsp_token_seen(Machine *m, Channel *c) {
    u64 value;
    while (c->takers.count > 0 && visible_token(m, c, &value)) wsp_deliver(m, wsp_pop(&c->takers), TOKEN, value);
}

/* The channel is closed; whoever waits for a token learns it. */
void wsp_close_seen(Machine *m, Channel *c) {
    c->seen_closed = true;
    while (c->takers.count > 0) wsp_deliver(m, wsp_pop(&c->takers), CLOSED, 0);
}
