import type { AccessKind } from '../../registry/contact.ts'
import { Card, countOf, countText } from '../design/parts.tsx'
import type { Count, PlatformFinding } from '../views/platform.ts'

const ACCESS_NAMES: Readonly<Record<AccessKind, string>> = {
  web: 'In a browser',
  app: 'Desktop or mobile app',
  api: 'API',
  tool: 'Editor, agent or other program',
}

/** How the platform was used, with the names that show it, and what is not use. */
export function Access({ finding: { access, programmaticClients, touched } }: { readonly finding: PlatformFinding }) {
  return (
    <Card title="How it is used" note="by the names that clients requested">
      {access.length === 0 ? (
        <p class="muted">Nobody used it.</p>
      ) : (
        <ul class="lines">
          {access.map(({ kind, matches, domains }) => (
            <li key={kind}>
              <div>
                {ACCESS_NAMES[kind]}
                <p class="small muted break">{domains.join(', ')}</p>
              </div>
              <span class="right">{countText(matches)}</span>
            </li>
          ))}
        </ul>
      )}
      {programmaticClients !== undefined && (
        <p class="small muted">
          {programmaticClients === 0
            ? 'Every client of the API also used a site or app of the vendor.'
            : `${countOf(programmaticClients, 'client')} requested only the API, and no site or app of the vendor: programs.`}
        </p>
      )}
      {touched > 0 && (
        <p class="small muted">
          {countOf(touched, 'match', 'matches')} only touched the platform: pictures, widgets, telemetry, updates,
          documentation or sign-in.
        </p>
      )}
    </Card>
  )
}

interface CountsProps {
  readonly counts: readonly Count[]
  readonly names: Readonly<Record<string, string>>
}

export function Counts({ counts, names }: CountsProps) {
  return (
    <ul class="lines">
      {counts.map(([what, count]) => (
        <li key={what}>
          <span>{names[what] ?? what}</span>
          <span class="right">{countText(count)}</span>
        </li>
      ))}
    </ul>
  )
}
