const HIGH_RISK = 70
const MEDIUM_RISK = 45

export type RiskLevel = 'low' | 'medium' | 'high'

/** The word for a risk of 0 to 100. */
export function riskLevel(score: number): RiskLevel {
  if (score >= HIGH_RISK) return 'high'
  return score >= MEDIUM_RISK ? 'medium' : 'low'
}

const DATE = new Intl.DateTimeFormat('en-US', { dateStyle: 'long', timeZone: 'UTC' })

/** `November 22, 2026` in UTC. */
export function dateText(timeMs: number): string {
  return DATE.format(timeMs)
}

const NUMBER = new Intl.NumberFormat('en-US')

/** `1,234` */
export function countText(count: number): string {
  return count < 1000 ? String(count) : NUMBER.format(count)
}

/** `1 client`, `1,234 clients` */
export function countOf(count: number, one: string, more = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : more}`
}

/** `last day`, `last 30 days` */
export function lastDays(days: number): string {
  return days === 1 ? 'last day' : `last ${countOf(days, 'day')}`
}

/** `88 %` */
export function percentText(share: number): string {
  if (share > 0 && share < 0.01) return 'under 1 %'
  if (share > 0.99 && share < 1) return 'over 99 %'
  return `${Math.round(share * 100)} %`
}

/** `+5`, `−3`, `0`. */
export function changeText(change: number): string {
  return change > 0 ? `+${change}` : String(change).replace('-', '−')
}

/** `2 points higher than`, `the same as`. */
export function pointsText(change: number): string {
  if (change === 0) return 'the same as'
  return `${countOf(Math.abs(change), 'point')} ${change > 0 ? 'higher' : 'lower'} than`
}

const BYTE_UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const

/** `12 MB` with a non-breaking space; '' of nothing, because 0 bytes are not known. */
export function bytesText(bytes: number): string {
  if (bytes === 0) return ''
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)}\u00a0${BYTE_UNITS[power]}`
}

export const NO_VOLUME = 'No log with byte counts'

/** `12 MB sent, 3.1 GB received`, as far as logs count bytes. */
export function volumeText({ bytesSent, bytesReceived }: { bytesSent: number; bytesReceived: number }): string {
  const known = [
    ...(bytesSent > 0 ? [`${bytesText(bytesSent)} sent`] : []),
    ...(bytesReceived > 0 ? [`${bytesText(bytesReceived)} received`] : []),
  ]
  return known.length === 0 ? NO_VOLUME : known.join(', ')
}
