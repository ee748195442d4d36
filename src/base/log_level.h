/* log_level.h - how loud a line of the log is. */
#ifndef RV_BASE_LOG_LEVEL_H
#define RV_BASE_LOG_LEVEL_H

enum rv_log_level {
    RV_LOG_INFO,
    RV_LOG_WARNING, /* something to look at, nothing is lost */
    RV_LOG_ERROR    /* somebody has to act */
};

#endif
