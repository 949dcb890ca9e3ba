// Words of the accounts and of the ledger.
import type { Words } from "./language";

const en = {
  title: "Accounts", none: "No account yet", noneText: "A run with an account pays for its calls; without one it costs nothing.", open: "Open account", prices: "Prices", noPrices: "No service has a price: every call is free.",
  head: { account: "Account", name: "Name", balance: "Balance", held: "Held", created: "Opened", service: "Service", unit: "Unit price", units: "Units", least: "Least units", changed: "Changed" },
  openTitle: "Open an account", id: "Id", name: "Name", opened: (id: string) => `Account ${id} is open`,
  deposit: "Deposit", depositTitle: (id: string) => `Deposit to ${id}`, amount: "Amount in minor units", key: "Key", keyHint: "The same key books once, however often it is sent.", deposited: (amount: string) => `${amount} booked`, again: "This key was booked before: nothing changed",
  setPrice: "Set a price", setPriceTitle: "Price of a service", service: "Service", unitPrice: "Unit price in minor units", priceSet: (service: string) => `Price of ${service} set`, removePrice: "Remove", removePriceTitle: (service: string) => `Remove the price of ${service}`, removePriceText: "Later calls are free.", priceRemoved: (service: string) => `Price of ${service} removed`,
  ledger: "Ledger", noEntries: "No entry yet", entry: { at: "Time", kind: "Kind", amount: "Amount", balance: "Balance after", for: "For", key: "Key", platform: "Borne by the platform" },
  kinds: { deposit: "Deposit", charge: "Charge, estimated", settle: "Settle", refund: "Refund", release: "Release", hold: "Hold" } as Record<string, string>,
  sumOk: "The sum of all entries is the balance", sumOff: (sum: string, balance: string) => `The entries sum to ${sum}, the balance is ${balance}`, check: "Check the sum", checking: "Reading all entries",
  newest: "Newest first", oldest: "Oldest first", order: "Order", run: "Run", filterRun: "Entries of run", download: "Download CSV", heldNote: "held for calls that are not settled", facts: { balance: "Balance", held: "Held", opened: "Opened" },
};

const zh: typeof en = {
  title: "账户", none: "还没有账户", noneText: "带账户的运行为其调用付费，没有账户则免费。", open: "开户", prices: "价格", noPrices: "没有服务定价：所有调用免费。",
  head: { account: "账户", name: "名称", balance: "余额", held: "冻结", created: "开户时间", service: "服务", unit: "单价", units: "数量", least: "最少数量", changed: "更改" },
  openTitle: "开户", id: "ID", name: "名称", opened: (id) => `账户 ${id} 已开立`,
  deposit: "充值", depositTitle: (id) => `为 ${id} 充值`, amount: "金额（最小单位）", key: "键", keyHint: "同一个键无论发送多少次只入账一次。", deposited: (amount) => `已入账 ${amount}`, again: "该键此前已入账：没有变化",
  setPrice: "设置价格", setPriceTitle: "服务价格", service: "服务", unitPrice: "单价（最小单位）", priceSet: (service) => `${service} 的价格已设置`, removePrice: "移除", removePriceTitle: (service) => `移除 ${service} 的价格`, removePriceText: "此后的调用免费。", priceRemoved: (service) => `${service} 的价格已移除`,
  ledger: "账本", noEntries: "还没有分录", entry: { at: "时间", kind: "类型", amount: "金额", balance: "余额", for: "用于", key: "键", platform: "平台承担" },
  kinds: { deposit: "充值", charge: "预扣", settle: "结算", refund: "退款", release: "释放", hold: "冻结" },
  sumOk: "全部分录之和等于余额", sumOff: (sum, balance) => `分录之和为 ${sum}，余额为 ${balance}`, check: "核对总和", checking: "正在读取全部分录",
  newest: "最新在前", oldest: "最早在前", order: "顺序", run: "运行", filterRun: "运行的分录", download: "下载 CSV", heldNote: "为未结算的调用冻结", facts: { balance: "余额", held: "冻结", opened: "开户" },
};

export const accountsWords: Words<typeof en> = { en, zh };
