import type { ComponentChildren } from 'preact'

export interface LiveProps {
  readonly id: string
  /** How often the browser asks for the page again. undefined: its content is final. */
  readonly pollMs: number | undefined
  readonly children: ComponentChildren
}

/**
 * Content that the browser script updates in place: it requests the same page again, and replaces
 * the parts that differ. So the server renders each state with the same code, with and without
 * scripts.
 */
export function Live({ id, pollMs, children }: LiveProps) {
  return (
    <div id={id} class="live" data-poll={pollMs}>
      {children}
      <p class="small muted" role="status" data-offline="The service does not answer. Trying again." />
    </div>
  )
}

export interface LivePartProps {
  readonly id: string
  /** Screen readers announce each change. */
  readonly isStatus?: boolean
  readonly children: ComponentChildren
}

/** A part that is replaced as a whole, and only if it changed. */
export function LivePart({ id, isStatus = false, children }: LivePartProps) {
  return (
    <div id={id} data-part="" role={isStatus ? 'status' : undefined}>
      {children}
    </div>
  )
}
