/**
 * The exit statuses of the three programs. Scripts depend on them, so they never change meaning. 0:
 * success. 1: internal error. 130, 143: ended by SIGINT or SIGTERM before the work was done (128 +
 * signal number).
 */
export const ExitStatus = {
  success: 0,
  internal: 1,
  usage: 2,
  damagedInput: 3,
  unavailable: 4,
  refused: 5,
} as const
export type ExitStatus = (typeof ExitStatus)[keyof typeof ExitStatus]

/**
 * All stable codes of expected errors, with their exit status. Listed in docs/reference/errors.md.
 */
export const FAULTS = {
  USAGE: {
    exit: ExitStatus.usage,
    about: 'The command line or a setting is wrong; the line names the flag or variable',
  },
  CAPTURE_UNREADABLE: { exit: ExitStatus.unavailable, about: 'The capture file cannot be opened or read' },
  CAPTURE_FORMAT: { exit: ExitStatus.unavailable, about: 'The file is not a capture file of a supported format' },
  CAPTURE_DAMAGED: {
    exit: ExitStatus.damagedInput,
    about: 'The capture file is truncated or corrupt; the part before the offset was used',
  },
  LOG_UNREADABLE: { exit: ExitStatus.unavailable, about: 'The log file cannot be opened or read' },
  LOG_DAMAGED: {
    exit: ExitStatus.damagedInput,
    about: 'The compressed log file is truncated or corrupt; the part before the error was used',
  },
  LOG_FORMAT: {
    exit: ExitStatus.unavailable,
    about: 'No message of the log file is in a known format; the message names the next step',
  },
  SELFTEST_MISSED: {
    exit: ExitStatus.internal,
    about: 'The self-test did not see every name in its capture: the build or the machine is faulty',
  },
  CAPTURE_DENIED: {
    exit: ExitStatus.unavailable,
    about: 'The interface cannot be opened: no such interface, or CAP_NET_RAW is missing',
  },
  CAPTURE_LOST: { exit: ExitStatus.unavailable, about: 'The interface vanished during the capture' },
  COLLECTOR_UNREACHABLE: { exit: ExitStatus.unavailable, about: 'No collector answers on its local endpoint' },
  COUNTERS_UNBALANCED: {
    exit: ExitStatus.internal,
    about: 'The counters do not add up: an internal error',
  },
  STORE_UNWRITABLE: {
    exit: ExitStatus.unavailable,
    about: 'The data directory is missing, is read-only or belongs to another user',
  },
  STORE_IN_USE: {
    exit: ExitStatus.unavailable,
    about: 'Another process uses the same outbox or store, or reads log files into the same store',
  },
  STORE_FULL: {
    exit: ExitStatus.unavailable,
    about: 'The file system has too little free space for the store',
  },
  STORE_VERSION: { exit: ExitStatus.unavailable, about: 'The store was written by a newer release' },
  STORE_DAMAGED: { exit: ExitStatus.unavailable, about: 'A stored value fails its checksum or has an unknown version' },
  STORE_CHECK_FAILED: {
    exit: ExitStatus.damagedInput,
    about: 'A check of the whole store found damage; each finding names the place. Restore a backup',
  },
  BROKERS_UNREACHABLE: {
    exit: ExitStatus.unavailable,
    about: 'The brokers of the log cannot be reached, or fewer than a majority answers',
  },
  BROKERS_REFUSED: {
    exit: ExitStatus.unavailable,
    about: 'The brokers of the log refuse the credentials',
  },
  BROKERS_UNSAFE: {
    exit: ExitStatus.unavailable,
    about:
      'A broker of the log acknowledges messages before they are on disk, or is too old, or the log has too few replicas',
  },
  BROKERS_LOST: {
    exit: ExitStatus.unavailable,
    about: 'The brokers have lost messages that the store has or still needs, or have another log than before',
  },
  NOT_PRIMARY: {
    exit: ExitStatus.refused,
    about: 'This node has a replica of the store, or cannot reach the brokers, so it changes nothing',
  },
  REPLACED: {
    exit: ExitStatus.unavailable,
    about: 'Another node is the primary now; this one has to start again',
  },
  NOT_REPLICATED: {
    exit: ExitStatus.unavailable,
    about: 'The change is stored on this node, but the brokers have not confirmed it',
  },
  BACKUP_FILE: {
    exit: ExitStatus.unavailable,
    about: 'The backup cannot be read or written, is damaged, or is not a file of posture-admin backup',
  },
  SECRETS_KEY: {
    exit: ExitStatus.unavailable,
    about:
      'The key file of stored secrets is missing, is readable by other users, or is not the key that encrypted the secret',
  },
  ALERT_NOT_SENT: {
    exit: ExitStatus.unavailable,
    about: 'The receiver of an alert channel cannot be reached, or does not accept a message',
  },
  UNPACK_DENIED: {
    exit: ExitStatus.unavailable,
    about: 'The single executable found no directory for its addons; set POSTURE_UNPACK_DIR',
  },
  PORT_TAKEN: { exit: ExitStatus.unavailable, about: 'Another program listens on the address and port' },
  PORT_DENIED: {
    exit: ExitStatus.unavailable,
    about: 'This user may not listen on the address and port',
  },
  CERTIFICATE: {
    exit: ExitStatus.unavailable,
    about: "The certificate or its private key cannot be used, or the service's certificate is not trusted",
  },
  REGISTRY_FILE: {
    exit: ExitStatus.usage,
    about: 'The registry file has an error; docs/reference/registry.md describes the format',
  },
  REGISTRY_UPDATE: {
    exit: ExitStatus.refused,
    about: 'The update of the registry cannot be fetched, or is refused: signature, schema or an older version',
  },
  SCAN_FAILED: {
    exit: ExitStatus.unavailable,
    about: 'The scan failed; its events wait for the next scan. posture-admin scan list shows the reason',
  },
  ASSESSMENT_FILE: {
    exit: ExitStatus.usage,
    about:
      'The file of an assessment cannot be read or written, or has an error; docs/reference/assessments.md describes the format',
  },
  AUDIT_FILE: {
    exit: ExitStatus.unavailable,
    about: 'The audit log cannot be written to the file, or the file exists',
  },
  EXPORT_FILE: {
    exit: ExitStatus.unavailable,
    about: 'An export, a block list or a report cannot be written to the file',
  },
  NOT_FOUND: {
    exit: ExitStatus.refused,
    about: 'No organization, key, token, scan, assessment or recommendation has that name',
  },
  CONFLICT: {
    exit: ExitStatus.refused,
    about: 'The change conflicts with existing data: the name is taken or a limit is reached',
  },
  NOT_ALLOWED: {
    exit: ExitStatus.refused,
    about: 'The member named by --as lacks the required role',
  },
  TOKEN_REFUSED: {
    exit: ExitStatus.refused,
    about: 'The service does not know the monitoring token, or it was revoked',
  },
  NO_EVENTS: {
    exit: ExitStatus.unavailable,
    about: 'No events arrived before the timeout of posture-admin verify; the line says what arrived instead',
  },
  SERVICE_UNREACHABLE: { exit: ExitStatus.unavailable, about: 'The service does not answer' },
} as const satisfies Record<string, { exit: ExitStatus; about: string }>
export type FaultCode = keyof typeof FAULTS

/**
 * An expected error at a boundary. The message is one line: what was wrong, where, and what would
 * be right. A broken invariant is an assertion, not a Fault.
 */
export class Fault extends Error {
  readonly code: FaultCode

  constructor(code: FaultCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Fault'
    this.code = code
  }

  get exitStatus(): ExitStatus {
    return FAULTS[this.code].exit
  }
}

/** A Fault in a message between threads, where an error loses its class and its code. */
export interface PlainFault {
  readonly code: FaultCode
  readonly message: string
}

export function plainFault({ code, message }: Fault): PlainFault {
  return { code, message }
}

/** Whether the error is a Fault with this code. */
export function isFault(error: unknown, code: FaultCode): error is Fault {
  return error instanceof Fault && error.code === code
}
