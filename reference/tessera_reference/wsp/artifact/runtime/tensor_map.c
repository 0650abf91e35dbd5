/* Dependency inference (section 3.4): the task in flight that wrote each tensor last, and those that read it since. */
#include "runtime.h"

static void find(Machine *m, Task *task) {
    if (task == NULL || task->mark == m->mark) return;
    task->mark = m->mark;
    if (m->found_count == m->found_room) {
        m->found_room = m->found_room ? 2 * m->found_room : 16;
        m->found = wsp_grow(m, m->found, m->found_count, m->found_room, sizeof(Task *));
    }
    m->found[m->found_count++] = task;
}

/* In `found`, each once, the tasks that must be complete before these tensors are read and written. */
void wsp_find_dependencies(Machine *m, uint32_t reads, const uint32_t *read, uint32_t writes, const uint32_t *written) {
    m->mark++;
    m->found_count = 0;
    for (uint32_t each = 0; each < reads; each++) find(m, m->writers[read[each]]);
    for (uint32_t each = 0; each < writes; each++) {
        find(m, m->writers[written[each]]);
        for (Reader *reader = m->readers[written[each]]; reader != NULL; reader = reader->after) find(m, reader->task);
    }
}

/* A task is issued. */
void wsp_map_add(Machine *m, Task *task) {
    const Site *site = task->site;
    for (uint32_t each = 0; each < site->read_count; each++) {
        Reader *reader = &task->readers[each], **list = &m->readers[site->reads[each]];
        *reader = (Reader){NULL, *list, task, true};
        if (*list != NULL) (*list)->before = reader;
        *list = reader;
    }
    for (uint32_t each = 0; each < site->write_count; each++) {
        uint32_t tensor = site->writes[each];
        for (Reader *reader = m->readers[tensor]; reader != NULL; reader = reader->after) reader->listed = false;
        m->readers[tensor] = NULL;
        m->writers[tensor] = task;
    }
}

/* A task is complete. */
void wsp_map_remove(Machine *m, Task *task) {
    const Site *site = task->site;
    for (uint32_t each = 0; each < site->read_count; each++) {
        Reader *reader = &task->readers[each];
        if (!reader->listed) continue;
        if (reader->before != NULL)
            reader->before->after = reader->after;
        else
            m->readers[site->reads[each]] = reader->after;
        if (reader->after != NULL) reader->after->before = reader->before;
    }
    for (uint32_t each = 0; each < site->write_count; each++)
        if (m->writers[site->writes[each]] == task) m->writers[site->writes[each]] = NULL;
}
