import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { CAPTURE_NICE } from '../limits.ts'

/**
 * Raises the priority of the calling thread, if permitted (root, CAP_SYS_NICE). The ring holds 200
 * ms of a busy link, and a capture thread that is scheduled later loses packets. Linux keeps a nice
 * value per thread (sched(7)).
 */
export function raisePriority(): void {
  try {
    // The link's target is PID/task/TID of the reading thread.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, CAPTURE_NICE)
  } catch {
    // Without the priority a busy machine loses packets sooner. Nothing can be done about that.
  }
}
