import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { CAPTURE_NICE } from '../limits.ts'

/**
 * Gives the thread that calls it precedence over the others, where that is permitted (root, CAP_SYS_NICE): the ring outlasts 200 ms of a busy
 * link, and a capture thread that waits longer for its turn loses packets. Linux keeps a nice value for each thread (sched(7)).
 */
export function takePrecedence(): void {
  try {
    // PID/task/TID of the thread that reads the link.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, CAPTURE_NICE)
  } catch {
    // Without it a busy machine loses sooner; there is nothing to do about it.
  }
}
