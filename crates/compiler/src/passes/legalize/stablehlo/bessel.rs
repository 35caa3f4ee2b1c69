//! The modified Bessel function of order 1, scaled: exp(-|x|) I1(x).
//!
//! It is a sum of Chebyshev polynomials, whose coefficients were calculated with 40 digits: below 8 of exp(-x) I1(x) / x in
//! x / 4 - 1, above of exp(-x) I1(x) √x in 16 / x - 1.

use tfrt_ir::{OpId, Type, ValueId};

use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[("chlo.bessel_i1e", bessel_i1e)];

const SMALL: &[f64] = &[
    0.126_293_593_221_816_82,
    -0.176_416_518_357_834_06,
    0.102_643_658_689_847_1,
    -0.052_945_981_208_094_99,
    0.024_726_449_030_626_516,
    -0.010_564_084_894_626_197,
    0.004_156_422_944_312_888,
    -0.001_513_572_450_631_253_2,
    0.000_512_285_956_168_575_8,
    -0.000_161_760_815_825_896_74,
    4.781_565_107_550_054e-5,
    -1.327_316_365_603_943_6e-5,
    3.470_251_308_137_678_5e-6,
    -8.568_720_264_695_455e-7,
    2.003_294_753_552_135_3e-7,
    -4.445_059_128_796_328e-8,
    9.381_537_386_495_773e-9,
    -1.887_249_751_722_829_4e-9,
    3.625_590_281_552_117e-10,
    -6.663_489_723_502_027e-11,
    1.173_618_629_889_090_1e-11,
    -1.983_974_397_764_943_6e-12,
    3.223_793_365_945_575e-13,
    -5.042_185_504_727_912e-14,
    7.600_684_294_735_408e-15,
    -1.105_596_947_735_386_2e-15,
    1.553_631_957_736_200_5e-16,
    -2.111_421_214_358_166e-17,
];

const LARGE: &[f64] = &[
    0.389_288_117_509_140_05,
    -0.009_761_097_491_361_469,
    -0.000_110_588_938_762_623_71,
    -3.882_564_808_877_691e-6,
    -2.512_236_237_870_209e-7,
    -2.631_468_846_889_519_6e-8,
    -3.835_380_385_964_237e-9,
    -5.589_743_462_196_584e-10,
    -1.897_495_812_350_541_3e-11,
    3.252_603_583_015_488_4e-11,
    1.412_580_743_661_378_2e-11,
    2.035_628_544_147_089_6e-12,
    -7.198_551_776_245_908e-13,
    -4.083_551_111_092_197_4e-13,
    -2.101_541_842_772_664_3e-14,
    4.272_440_016_711_951e-14,
    1.042_027_698_412_880_2e-14,
    -3.814_403_072_437_007_5e-15,
    -1.880_354_775_510_782_5e-15,
    3.308_202_310_920_928_5e-16,
    2.962_628_997_645_95e-16,
    -3.209_525_921_993_424e-17,
    -4.650_305_368_489_358e-17,
];

fn bessel_i1e(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operand = l.operand(op, 0)?;
    let element = l.element(operand);
    let x = l.cast(operand, &Type::F64);
    let size = l.unary("abs", x);
    let place = l.with_number("mul", size, 0.25);
    let place = l.with_number("sub", place, 1.0);
    let small = l.chebyshev(place, SMALL);
    let small = l.binary("mul", small, x);
    let sixteen = l.number(&Type::F64, 16.0);
    let place = l.binary("div", sixteen, size);
    let place = l.with_number("sub", place, 1.0);
    let large = l.chebyshev(place, LARGE);
    let root = l.unary("sqrt", size);
    let large = l.binary("div", large, root);
    let sign = l.unary("sign", x);
    let large = l.binary("mul", large, sign);
    let end = l.number(&Type::F64, 8.0);
    let is_small = l.compare("le", size, end);
    let value = l.select(is_small, small, large);
    Ok(vec![Bound::Tensor(l.cast(value, &element))])
}

impl Lowering<'_> {
    /// Adds Chebyshev polynomials of numbers from -1 to 1, by Clenshaw's recurrence.
    fn chebyshev(&mut self, x: ValueId, coefficients: &[f64]) -> ValueId {
        let twice = self.binary("add", x, x);
        let zero = self.number(&Type::F64, 0.0);
        let (mut last, mut before) = (zero, zero);
        let (first, rest) = coefficients.split_first().unwrap_or((&0.0, &[]));
        for coefficient in rest.iter().rev() {
            let next = self.binary("mul", twice, last);
            let next = self.binary("sub", next, before);
            let next = self.with_number("add", next, *coefficient);
            (before, last) = (last, next);
        }
        let value = self.binary("mul", x, last);
        let value = self.binary("sub", value, before);
        self.with_number("add", value, *first)
    }
}
