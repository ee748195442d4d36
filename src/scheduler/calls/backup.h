/* backup.h - backups. */
#ifndef RV_SCHEDULER_CALLS_BACKUP_H
#define RV_SCHEDULER_CALLS_BACKUP_H

struct call_ops;

extern const struct call_ops backup_ops;

#endif
