//! The texts that `tfrt explain` shows, a file for each code.

/// Makes a list of pairs: a code, and the text of the file that has its name.
///
/// `explanations!["TF0001"]` becomes
/// ```ignore
/// [("TF0001", include_str!("../../diagnostics/TF0001.md"))]
/// ```
macro_rules! explanations {
    ($($code:literal),* $(,)?) => {
        [$(($code, include_str!(concat!("../../diagnostics/", $code, ".md")))),*]
    };
}

/// Every code with its explanation, in order.
pub(super) const ALL: &[(&str, &str)] = &explanations![
    "TF0001", "TF0002", "TF0003", "TF0004", "TF0005", "TF0101", "TF0102", "TF0103", "TF0104",
    "TF0105", "TF0106", "TF0107", "TF0108", "TF0109", "TF0110", "TF0111", "TF0112", "TF0113",
    "TF0114", "TF0115", "TF0116", "TF0117", "TF0118", "TF0119", "TF0120", "TF0121", "TF0122",
    "TF0123", "TF0124", "TF0125", "TF0126", "TF0127", "TF0128", "TF0201", "TF0202", "TF0203",
    "TF0204", "TF0205", "TF0206", "TF0207", "TF0208", "TF0209", "TF0210", "TF0211", "TF0212",
    "TF0213", "TF0214", "TF0301", "TF0302", "TF0303", "TF0304", "TF0305", "TF0306", "TF0307",
    "TF0308", "TF0309", "TF0310", "TF0311", "TF0312", "TF0313", "TF0314", "TF0315", "TF0316",
    "TF0317", "TF0401", "TF0402", "TF0403", "TF0404", "TF0405", "TF0406", "TF0407", "TF0408",
    "TF0409", "TF0410", "TF0411", "TF0412", "TF0413", "TF0415", "TF0416", "TF0417", "TF0418",
    "TF0419", "TF0420", "TF0421", "TF0422", "TF0423", "TF0424", "TF0425", "TF0426", "TF0427",
    "TF0428", "TF0429", "TF0430", "TF0431", "TF0432", "TF0433", "TF0501", "TF0502", "TF0503",
    "TF0504", "TF0505", "TF0506", "TF0507", "TF0508", "TF0509", "TF0510", "TF0511", "TF0512",
    "TF0513", "TF0514", "TF0515", "TF0516", "TF0517", "TF0518", "TF0519", "TF0520", "TF0601",
    "TF0602", "TF0603", "TF0604", "TF0605", "TF0606", "TF0607", "TF0608", "TF0609", "TF0610",
    "TF0611", "TF0612", "TF0613", "TF0614", "TF0615", "TF0616", "TF0617", "TF0618", "TF0619",
    "TF0620", "TF0621", "TF0622", "TF0623", "TF0624", "TF0625", "TF0626", "TF0627", "TF0701",
    "TF0702", "TF0703", "TF0704", "TF0705", "TF0706", "TF0707", "TF0708", "TF0801", "TF0802",
    "TF0803", "TF0804", "TF0805", "TF0806", "TF0901", "TF0902", "TF0903", "TF1001", "TF1002",
    "TF1003", "TF1004", "TF1005", "TF1006", "TF1007", "TF1008", "TF1009", "TF1010", "TF1011",
    "TF1012", "TF1013", "TF1014", "TF1015", "TF1016", "TF1017", "TF1401", "TF1402", "TF1403",
    "TF1404", "TF1405", "TF1406", "TF1407", "TF1408", "TF1409", "TF1410",
];
