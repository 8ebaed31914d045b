import assert from 'node:assert'
import { isDigit, isLetter } from './bytes.ts'

/**
 * The role of a field. The id of a field is FIELD_RANKS * role + rank. Of two fields of one role,
 * the one with the smaller rank is preferred.
 *
 *   time      when the request was made
 *   client    the address that made a request, by a name with no other meaning (`srcip`)
 *   address   an address that may be the client's, the device's or any other (`ip`)
 *   host      the requested host, by a name with no other meaning (`qname`, `sni`)
 *   url       the requested URL
 *   own       a name that devices give to themselves or the client (`hostname`), or a user's domain
 *   action    whether the request was allowed
 *   target    the other end of a connection, its ports, or the method of a request
 *   account   a user who may not be the client's: an address of mail, the other end of a connection
 *   kind      text that says which kind of record the message is
 *   foreign   only in records that are no client's request: mail, sign-ins, audits, leases,
 *             processes, a web server's own requests
 *   system    only in the event log of an operating system, whose `Domain` is the machine's
 *   logger    written by a program or forwarder about itself
 *   control   depends on the format
 *   user      the client's user
 *   sent      bytes that the client sent, by a name with no other meaning (`cs-bytes`)
 *   received  bytes that the client received
 *   forwarded the original client behind proxies, which clients can write
 */
export const FieldKind = {
  time: 0,
  client: 1,
  address: 2,
  host: 3,
  url: 4,
  own: 5,
  action: 6,
  target: 7,
  account: 8,
  kind: 9,
  foreign: 10,
  system: 11,
  logger: 12,
  control: 13,
  user: 14,
  sent: 15,
  received: 16,
  forwarded: 17,
} as const
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

export const FIELD_RANKS = 32
export const FIELD_KINDS = 18
export const NO_FIELD = -1

/*
 * Names of fields: lower case, ASCII letters and digits only (`direccindeorigen` is "Dirección de
 * origen"), in English, German, French and Spanish. Each word is a rank; words with a slash between
 * them share a rank. The internal address precedes the external address (Netskope writes
 * both). A `source` or `destination` may be an address or a name: only an address is read as the
 * client, only a name as the host.
 */
const WORDS: Readonly<Partial<Record<keyof typeof FieldKind, string>>> = {
  time: 'timegeneratedhighresolution/xcstimestamp eventtime/ereigniszeit epochtime timestamp/zeitstempel/horodatage/marcadetiempo/requesttimestamp timegenerated generatetime/generatedtime devtime datetime/datumuhrzeit/datumundzeit/datumunduhrzeit/dateheure/dateetheure/fechahora/fechayhora time/zeit/uhrzeit/heure/hora receivetime receivedtime logtime eventdate starttime/startzeit start rt date/datum/fecha ts t',
  client:
    'xcsuserip/devicelocalip userip clientip/ipclient/ipduclient/ipcliente/ipdelcliente srcip sourceip/quellip/ipsource/iporigen/ipdeorigen sourceaddress/quelladresse/adressesource/direccinorigen/direccindeorigen src cip csip/cltip/cltintip/cltsip clientaddress/clientadresse/adresseclient/adresseduclient/direccindelcliente internalip srcipv6 sourceipaddress/quellipadresse/adresseipsource/direccinipdeorigen client/cliente clientipaddress/clientipadresse/adresseipclient/adresseipduclient/direccinipdelcliente remoteaddr initiator requester clientpublicip/cltpubip source/quelle/origen/srchost',
  address: 'hostip ipaddress ip externalip',
  host: 'qh/dnsquestionname/dnsrrname/tlssni/quicsni/httphostname urldomain/destinationdomain/serverdomain dsthost desthost/destinationhost/targethost/zielhost/htededestination/hostdedestino dstname destinationhostname/destinationfqdn dhost cshost/xcshost qname query queryname questionname requesteddomain/requestedhost/angefordertedomain/angefordertedomne/domainedemand/dominiosolicitado sni/xcssni dnsrequest dnsreq/dnsquery rrname destination',
  url: 'url/urloriginal/urlfull/zielurl/webadresse/adresseurl/direccinurl urlfilename requesturl uri csuri/xcsurl request eurl fullurl',
  own: 'domain/domne/domaine/dominio/nomdedomaine/nombrededominio host/hte website fqdn hostname servername site name',
  action:
    'action/aktion/accin/eventaction/reqaction/policyaction/alertaction act disp disposition verdict labelsrequeststatus decision responsetype result status',
  target:
    'dst dstip destip destinationip/destinationaddress/zielip/zieladresse/ipdestination/ipdedestino dest serverip sip daddr dport/dpt sourceport/srcport/sport/spt dstport destport destinationport requestmethod method/httpmethod/csmethod',
  account:
    'userid/useremail duser dstuser/destinationuser/targetuser identity account/accountname principal/actor email/mail',
  user: 'srcuser/sourceuser/sourceusername/suser/clientuser/clientusername csusername/xcsusername user/benutzer/utilisateur/usuario username/benutzername/nomdutilisateur/nombredeusuario login usrname useridentity userprincipalname/upn',
  /*
   * Names such as `bytes_sent`, `sent` or `in` are not here: the sender is the client for a firewall
   * and the server for a proxy (nginx), and CEF's dictionary and its users disagree.
   */
  sent: 'csbytes sentbyte reqsize/requestsize clientbytes srcbytes/sourcebytes httprequestbytes uploadbytes/bytesuploaded bytestoserver/flowbytestoserver/clienttoserverbytes',
  received:
    'scbytes rcvdbyte respsize/responsesize serverbytes dstbytes/destinationbytes httpresponsebytes downloadbytes/bytesdownloaded bytestoclient/flowbytestoclient/servertoclientbytes',
  forwarded:
    'originalclientip/originalclientsrcip/proxysrcip/trueclientip/trueclntip xforwardedfor/csxforwardedfor/httpxforwardedfor/forwardedfor/forwarded/xff/xffip',
  kind: 'type logtype/logcategory subtype eventtype eventname event/eventclass/eventclassid eventcategory/categoryname category cat class/classname sourcetype servicetype service/servicename program/programname/appname/application process/daemon/ident protocol/proto app/applicationprotocol facility dataset/eventdataset module/eventmodule logname/logger msg/message description/desc reason details/detail/summary/title product/deviceproduct tag/tags outcome activity/activitytype',
  foreign: [
    // Mail.
    'mailfrom/envelopefrom/envfrom/headerfrom/fromdomain/fromaddress/frommailaddress',
    'sender/absender/expditeur/remitente/senderdomain/senderaddress/senderemail/senderfromdomain/senderfromaddress/senderip',
    'rcpt/rcptto/mailto/empfnger/destinataire/destinatario/recipient/recipients/recipientaddress/recipientemailaddress/recipientdomain',
    'spf/dkim/dmarc/spfresult/dkimresult/dmarcresult internetmessageid/networkmessageid/smtpdialog/smtpstatus/queueid/qid mailer relay',
    // Sign-ins, sessions and audits.
    'operation/operationname workload/recordtype/auditid/audittype/auditevent actorid/actoremail/actorip/actorlogin/actoruserid',
    'authmethod/authtype/authresult/authstatus/authenticationmethod/authenticationprotocol/authprotocol logontype/logonid/logonprocess/logonprocessname',
    'mfa/mfaresult/factor/conditionalaccessstatus vpn/vpnip/tunnelip/tunneltype/assignedip/vpnuser/vpngateway sessionuser/sessionevent loginstatus/loginresult/loginevent',
    // Leases and neighbors.
    'lease/leasetime/leaseduration/leaseexpires/dhcptype/dhcpmessage/dhcpaction offeredip/requestedip/assignedaddress',
    // Processes and files.
    'commandline/processcommandline/initiatingprocesscommandline/cmdline parentprocess/parentprocessname/parentimage/parentcommandline auid/ses',
    // A web server or load balancer in front of it.
    'upstream/upstreamaddr/upstreamhost/upstreamstatus/upstreamresponsetime backend/backendname/backendip/backendserver vhost/virtualhost/virtualserver/httpvhost',
    'requesturi/requestpath/scriptname/documentroot webaclid/ruleset/targetgrouparn/distributionid/edgelocation/xedgelocation/xedgeresulttype/xhostheader/appfirewallname/apiendpoint/requestheadersxforwardedhost/requestheadersxrealip/cfray/rayid ingressname/poolname/loadbalancer/elb',
  ].join(' '),
  system:
    'channel/winlogchannel providername/winlogprovidername/provider/providerguid eventrecordid/recordnumber/recordid/winlogrecordid sourcemodulename/sourcemoduletype sourcename computer/computername/winlogcomputername targetdomainname/subjectdomainname/targetusername/subjectusername eventid/eventidentifier/winlogeventid',
  logger:
    'level/loglevel/severity/priority/pri syslogseverity/syslogfacility/facilitycode shortmessage pid/procid/processid logsource/dvc/dvchost/devicename/devname/observername agent/agentname/beatname thread/stacktrace',
}

/** The id of each name that more than one vendor uses. */
export const SYNONYMS: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(WORDS).flatMap(([role, words]) =>
    Object.entries(idsOf(FieldKind[role as keyof typeof FieldKind], words)),
  ),
)

export const DATE_FIELD = SYNONYMS['date'] ?? NO_FIELD
export const PUBLIC_CLIENT_FIELD = SYNONYMS['clientpublicip'] ?? NO_FIELD
export const TIME_FIELD = SYNONYMS['time'] ?? NO_FIELD
/** The envelope of a forwarder has a `host` and a `source` of its own. */
export const HOST_FIELD = SYNONYMS['host'] ?? NO_FIELD
export const SOURCE_FIELD = SYNONYMS['source'] ?? NO_FIELD
export const DOMAIN_FIELD = SYNONYMS['domain'] ?? NO_FIELD
export const WEBSITE_FIELD = SYNONYMS['website'] ?? NO_FIELD
/** What a user did in an application, by the gateway in between or by the application itself. */
export const ACTIVITY_FIELD = SYNONYMS['activity'] ?? NO_FIELD
export const ACTION_FIELD = SYNONYMS['action'] ?? NO_FIELD
export const APP_FIELD = SYNONYMS['app'] ?? NO_FIELD
export const METHOD_FIELD = SYNONYMS['method'] ?? NO_FIELD
export const SOURCE_PORT_FIELD = SYNONYMS['sourceport'] ?? NO_FIELD
export const REQUEST_METHOD_FIELD = SYNONYMS['requestmethod'] ?? NO_FIELD
/** A file name or a domain; PAN-OS's `URL/Filename` is the same. */
export const NAME_FIELD = SYNONYMS['name'] ?? NO_FIELD
export const URL_OR_FILE_FIELD = SYNONYMS['urlfilename'] ?? NO_FIELD

/** The ids of words in the order of their ranks; words of one rank have a slash between them. */
export function idsOf(kind: FieldKind, words: string): Record<string, number> {
  const ids: Record<string, number> = {}
  const ranks = words.split(' ')
  assert(ranks.length <= FIELD_RANKS, words)
  for (const [rank, alike] of ranks.entries()) {
    for (const word of alike.split('/')) ids[word] = kind * FIELD_RANKS + rank
  }
  return ids
}

/** For each byte: a letter in lower case, a digit, or 0 for a separator. */
const LETTER = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) LETTER[byte] = isLetter(byte) ? byte | 0x20 : isDigit(byte) ? byte : 0

/** FNV-1a, 32 bit. */
const SEED = 0x811c9dc5
const PRIME = 0x01000193

/** The memory of a NameTable for the names that it was asked for, known and unknown ones. */
const REMEMBERED = 1 << 9
/** Names that are longer are not remembered. */
const REMEMBERED_BYTES_MAX = 32
const FORGOTTEN = -1

/**
 * As KeyTable, but compares only letters and digits, so `src_ip`, `Src IP` and `source.ip` match.
 * The messages of a source have the same names again and again, in the same spelling. So a name is
 * first compared with the name that was found last in the same place of a small table.
 */
export class NameTable {
  readonly #words: readonly string[]
  readonly #ids: Int32Array
  readonly #slots: Int32Array
  readonly #mask: number
  readonly #lengthMax: number
  /**
   * 1 for the first, second and last letter of each word: rejects most unknown names before they
   * are hashed.
   */
  readonly #letters = new Uint8Array(1 << 15)
  /** For each place: the length of its name and the prefix before it, the name, and its id. */
  readonly #lengths = new Int32Array(REMEMBERED).fill(FORGOTTEN)
  readonly #names = new DataView(new ArrayBuffer(REMEMBERED * REMEMBERED_BYTES_MAX))
  readonly #found = new Int32Array(REMEMBERED)

  /** Words of lower-case letters and digits, each with its id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    this.#words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    // As many separators as letters.
    this.#lengthMax = Math.max(...this.#words.map((word) => word.length)) * 2
    let size = 16
    while (size < this.#words.length * 4) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(NO_FIELD)
    for (const [index, word] of this.#words.entries()) {
      this.#letters[lettersOf(word.charCodeAt(0), secondOf(word), word.charCodeAt(word.length - 1))] = 1
      let slot = placeOf(hashOfWord(word)) & this.#mask
      while (this.#slots[slot] !== NO_FIELD) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** The id of the name in [start, end), or NO_FIELD. */
  find(view: DataView, start: number, end: number): number {
    return this.findAfter(NO_PREFIX, view, start, end)
  }

  /**
   * As find, for the name that consists of the letters of `prefix` and the text in [start, end).
   */
  findAfter(prefix: NamePrefix, view: DataView, start: number, end: number): number {
    const bytes = end - start
    if (bytes <= 0) return NO_FIELD
    if (bytes > REMEMBERED_BYTES_MAX) return this.#search(prefix, view, start, end)
    const length = prefix.id * (REMEMBERED_BYTES_MAX + 1) + bytes
    const isShort = bytes < 4
    // Of a short name, the first, middle and last bytes are all.
    const head = isShort
      ? view.getUint8(start) | (view.getUint8(start + (bytes >> 1)) << 8) | (view.getUint8(end - 1) << 16)
      : view.getInt32(start, true)
    const tail = isShort ? 0 : view.getInt32(end - 4, true)
    const place = Math.imul(head ^ Math.imul(tail ^ length, 0x85ebca6b), 0x9e3779b1) >>> 23
    const at = place * REMEMBERED_BYTES_MAX
    const names = this.#names
    if (this.#lengths[place] === length && names.getInt32(at, true) === head) {
      let offset = 4
      while (offset + 4 <= bytes && names.getInt32(at + offset, true) === view.getInt32(start + offset, true))
        offset += 4
      if (isShort || (offset + 4 > bytes && names.getInt32(at + bytes - 4, true) === tail))
        return this.#found[place] ?? NO_FIELD
    }
    const id = this.#search(prefix, view, start, end)
    this.#lengths[place] = length
    this.#found[place] = id
    if (isShort) names.setInt32(at, head, true)
    else for (let offset = 0; offset < bytes; offset++) names.setUint8(at + offset, view.getUint8(start + offset))
    return id
  }

  #search(prefix: NamePrefix, view: DataView, start: number, end: number): number {
    const { text } = prefix
    if (text.length + end - start > this.#lengthMax) return NO_FIELD
    const first = prefix.first || LETTER[view.getUint8(start)] || 0
    const second = prefix.second || (text === '' ? LETTER[view.getUint8(end - start > 1 ? start + 1 : start)] || 0 : 0)
    const last = LETTER[view.getUint8(end - 1)] ?? 0
    // With a separator among the three bytes, the name's letters are elsewhere.
    if (first !== 0 && second !== 0 && last !== 0 && this.#letters[lettersOf(first, second, last)] !== 1)
      return NO_FIELD
    let slot = placeOf(hashOf(view, start, end, prefix.hash)) & this.#mask
    for (;;) {
      const index = this.#slots[slot] ?? NO_FIELD
      if (index === NO_FIELD) return NO_FIELD
      const word = this.#words[index] ?? ''
      if (word.startsWith(text) && isRestOf(word, text.length, view, start, end)) return this.#ids[index] ?? NO_FIELD
      slot = (slot + 1) & this.#mask
    }
  }
}

/** The letters with which a name begins, hashed once for all names that begin with them. */
export class NamePrefix {
  /** Distinguishes the prefixes of a table. */
  readonly id: number
  readonly text: string
  readonly hash: number
  /** The first two letters, or 0. */
  readonly first: number
  readonly second: number

  constructor(id: number, text: string) {
    this.id = id
    this.text = text
    this.hash = hashOfWord(text)
    this.first = text === '' ? 0 : text.charCodeAt(0)
    this.second = text.length < 2 ? 0 : text.charCodeAt(1)
  }
}

const NO_PREFIX = new NamePrefix(0, '')

/** Five bits of each letter or digit. A collision costs one more hash. */
function lettersOf(first: number, second: number, last: number): number {
  return ((first & 31) << 10) | ((second & 31) << 5) | (last & 31)
}

function secondOf(word: string): number {
  return word.charCodeAt(Math.min(1, word.length - 1))
}

function hashOfWord(word: string): number {
  let hash = SEED
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), PRIME)
  return hash
}

function placeOf(hash: number): number {
  return hash ^ (hash >>> 15)
}

function hashOf(view: DataView, start: number, end: number, seed: number): number {
  let hash = seed
  for (let at = start; at < end; at++) {
    const letter = LETTER[view.getUint8(at)] ?? 0
    if (letter !== 0) hash = Math.imul(hash ^ letter, PRIME)
  }
  return hash
}

/** Whether the letters in [start, end) are those of the word from `index`. */
function isRestOf(word: string, index: number, view: DataView, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const letter = LETTER[view.getUint8(at)] ?? 0
    if (letter === 0) continue
    if (index === word.length || letter !== word.charCodeAt(index)) return false
    index++
  }
  return index === word.length
}
