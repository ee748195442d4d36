/* clock.h - the process's two clocks: the wall's, and the one that never goes back. */
#ifndef RV_BASE_OS_CLOCK_H
#define RV_BASE_OS_CLOCK_H

#include <stdint.h>

/* Since 1970; may jump when somebody sets it. The store reads it through rv_wall_clock; beside that
 * it is for the Date of an answer. */
int64_t rv_clock_wall_ms(void);
/* Since some fixed moment; for deadlines and for arrival stamps. */
int64_t rv_clock_mono_ms(void);
int64_t rv_clock_mono_us(void);
/* As mono, and it goes on while the machine is suspended: for deadlines that others keep too. */
int64_t rv_clock_boot_ms(void);

#endif
