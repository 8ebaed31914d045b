/**
 * Named places where a test can kill the process, as a power failure would, to check what the store
 * then contains. Armed by the variable POSTURE_FAULT_POINT. Otherwise a fault point costs one
 * comparison.
 */
const ARMED = process.env['POSTURE_FAULT_POINT']

export function faultPoint(name: string): void {
  if (ARMED === name) process.kill(process.pid, 'SIGKILL')
}
