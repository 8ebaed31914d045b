/** Carries messages; `send` resolves when the operating system has all of them. */
export interface SyslogLink {
  /** Whether a connection stands, or by UDP: nobody said that there is no receiver. */
  readonly alive: boolean
  /** Connects where that is needed. @throws what connectionProblem() reads. */
  open(): Promise<void>
  send(messages: readonly string[]): Promise<void>
  close(): Promise<void>
}
