/**
 * Named places where a test can end the process as a power cut would, to prove what the store then holds.
 * Armed by the variable POSTURE_FAULT_POINT; without it a fault point is one comparison.
 */
const ARMED = process.env['POSTURE_FAULT_POINT']

export function faultPoint(name: string): void {
  if (ARMED === name) process.kill(process.pid, 'SIGKILL')
}
