/** Sends messages. `send` resolves when the operating system has all of them. */
export interface SyslogLink {
  /** Whether a connection is open. For UDP: no error has reported a missing receiver. */
  readonly alive: boolean
  /** Connects if needed. @throws errors for connectionProblem(). */
  open(): Promise<void>
  send(messages: readonly string[]): Promise<void>
  close(): Promise<void>
}
