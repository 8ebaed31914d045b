import { z } from 'zod'

/**
 * The class of a platform: what it receives, who controls it, and under which law. Three tables give
 * its points, so that the risk of a platform of which nothing else is known can be read and disputed.
 * Documented in docs/reference/registry.md.
 */
interface Row {
  readonly points: number
  /** A sentence about the platform. */
  readonly text: string
}

/** What the service typically receives. */
export const DATA = {
  little: { points: 10, text: 'Receives little: downloads, updates or public information' },
  prompts: { points: 13, text: 'Receives prompts, pictures or search questions' },
  documents: { points: 23, text: 'Receives documents, source code, notes or messages' },
  sensitive: { points: 33, text: 'Receives faces, voices to imitate, health data, applications or intimate talk' },
  conversations: { points: 38, text: 'Records conversations, with people outside the organization' },
  access: { points: 38, text: "Acts with the user's access to systems, files and accounts" },
} as const satisfies Record<string, Row>

/** How much the organization controls. */
export const CONTROL = {
  own_cloud: { points: -10, text: "Runs in the organization's own cloud account or tenant" },
  contract: { points: -5, text: 'Is usually used under a contract of the organization' },
  terms: { points: 5, text: "Is used under the vendor's terms for companies or developers" },
  personal: { points: 10, text: 'Is often used with personal accounts, under terms for consumers' },
  several: { points: 25, text: "Passes data to several vendors, or to other people's computers" },
  reseller: { points: 40, text: 'Is a reseller that nobody knows, between the user and the vendor' },
} as const satisfies Record<string, Row>

/** The law that the vendor is subject to. */
export const LAW = {
  adequate: { points: -5, text: 'The vendor is in the EEA or a country that the EU recognizes as adequate' },
  other: { points: 0, text: 'The vendor is in another country, or its country is not known' },
  chinese_parent: { points: 25, text: 'A Chinese group owns the vendor and can reach the data' },
  china: { points: 35, text: 'Chinese law gives the state access to the data' },
  russia: { points: 35, text: 'Russian law gives the state access to the data' },
} as const satisfies Record<string, Row>

const keysOf = <K extends string>(rows: Readonly<Record<K, Row>>) => Object.keys(rows) as [K, ...K[]]

/** The fields of an entry of registry/platforms/*.yaml that place the platform in the tables. */
export const riskClass = z.strictObject({
  data: z.enum(keysOf(DATA)),
  control: z.enum(keysOf(CONTROL)),
  law: z.enum(keysOf(LAW)).default('other'),
})
export type RiskClass = z.infer<typeof riskClass>
